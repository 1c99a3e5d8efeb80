"""The broker against a model of it, by random commands."""
