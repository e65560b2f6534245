"""Transcripts of sessions, and their exports."""
