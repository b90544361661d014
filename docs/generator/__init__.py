"""The generated pages of ``docs/``: a module per page, each with a function that returns the page's text."""
