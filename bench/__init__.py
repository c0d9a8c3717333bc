"""The measurements behind the table of what flowproof's speed and size have to reach."""
