"""Tests of the typed IR, its passes and its stages."""
