"""The report as pages: one file that opens from disk, a server, a TensorBoard tab, a notebook."""
