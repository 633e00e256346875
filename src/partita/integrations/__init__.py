"""Integrations with other tools. Each module needs the tool that it is named after."""
