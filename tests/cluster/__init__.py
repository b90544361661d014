"""Tests of many ranks as one job."""
