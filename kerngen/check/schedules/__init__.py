"""Checking schedules: the kernels that they are for, their options and guards."""
