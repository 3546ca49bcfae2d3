"""Messages of the API, generated from the proto files."""
