"""Profiles that come from another host broker, or go to one."""
