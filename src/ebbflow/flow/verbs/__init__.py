"""The verbs of collections, by what they are about, and verbs of other libraries."""
