"""The control map in the forms in which it is printed."""
