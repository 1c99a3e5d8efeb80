"""Tests of the project: a folder a package, then by method: model, golden, crash, interop, docs, surface."""
