"""flowproof: what a flow may touch, compiled into the filter that enforces it."""

__version__ = "0.1.0"
__all__ = ["__version__"]
