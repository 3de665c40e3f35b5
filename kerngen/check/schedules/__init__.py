"""Schedules: which kernels they are for, their options and guards."""
