"""Preparation as an Apache Beam pipeline; the only folder that opens Beam (extra `beam`)."""
