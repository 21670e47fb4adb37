"""Pages with charts and tables, for the tools that measure."""
