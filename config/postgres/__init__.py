"""Django's Postgres backend, whose pool forgets connections that a restart of the server broke."""
