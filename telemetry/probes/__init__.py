"""Probes: each reads some fields of the machine or the job, and says why when it cannot."""
