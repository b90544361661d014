"""SQLite files as columns, without SQLite: tables are read page by page, so that damage costs only what it hit.

``Database`` finds the tables, ``read`` takes chosen columns of one. Nothing of a file is ever executed: views,
virtual tables, triggers and indexes are not looked at. Why not the ``sqlite3`` module:
``docs/decisions/0005-own-sqlite-reader.md``.
"""

from __future__ import annotations

from stepscope.formats.nsys.sqlite.database import UNREADABLE, ColumnTexts, Database, DatabaseTable, TableRows

__all__ = ["UNREADABLE", "ColumnTexts", "Database", "DatabaseTable", "TableRows"]
