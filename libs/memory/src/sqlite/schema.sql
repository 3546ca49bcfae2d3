-- Every table with a tenant's data has the tenant's number in `tenant`. `agent` and `user` are numbers of `principal`; user 0 means none.
-- Numbers are never reused, because entries of word lists begin with the tenant's number.
CREATE TABLE tenant (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE);
CREATE TABLE principal (
  id INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (tenant, kind, name)
);
CREATE TABLE model (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, dimension INTEGER NOT NULL, ready INTEGER NOT NULL
);
-- `record` is narrow, since ranking and filters read many rows; `record_body` has what hits show, under the same id.
CREATE TABLE record (
  id INTEGER PRIMARY KEY AUTOINCREMENT, tenant INTEGER NOT NULL, kind INTEGER NOT NULL, record_key TEXT NOT NULL,
  agent INTEGER NOT NULL, user INTEGER NOT NULL, created_at INTEGER NOT NULL, worth REAL NOT NULL, shown INTEGER NOT NULL,
  revision INTEGER NOT NULL, texts INTEGER NOT NULL, words INTEGER NOT NULL, UNIQUE (tenant, kind, record_key)
);
CREATE INDEX record_by_time ON record (tenant, kind, created_at, record_key);
CREATE TABLE record_body (
  id INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, fields TEXT NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL, sources TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE TABLE record_field (
  tenant INTEGER NOT NULL, field INTEGER NOT NULL, value TEXT NOT NULL, record INTEGER NOT NULL,
  PRIMARY KEY (tenant, field, value, record)
) WITHOUT ROWID;
-- Notes which records each model has embedded, and how many of their texts have a vector. `vectorTable` has the vectors and `codeTable`
-- their codes, both under `record * RECORD_TEXTS_MAX + index of the text`.
CREATE TABLE embedding (
  model INTEGER NOT NULL, record INTEGER NOT NULL, tenant INTEGER NOT NULL, vectors INTEGER NOT NULL, PRIMARY KEY (model, record)
) WITHOUT ROWID;
CREATE TABLE layer_size (
  tenant INTEGER NOT NULL, layer INTEGER NOT NULL, worded INTEGER NOT NULL, records INTEGER NOT NULL, texts INTEGER NOT NULL,
  PRIMARY KEY (tenant, layer)
) WITHOUT ROWID;
-- One row per record with words, under its id, and one column per number of occurrences: see COUNT_COLUMNS. `words.ts` joins the words
-- itself, so the plainest tokenizer is enough.
CREATE VIRTUAL TABLE record_words USING fts5 (
  c1, c2, c3, c4, c5, c6, c7, c8, content='', contentless_delete=1, detail=column, tokenize=ascii
);
INSERT INTO record_words (record_words, rank) VALUES ('automerge', 8);
CREATE VIRTUAL TABLE record_words_row USING fts5vocab (record_words, row);
CREATE VIRTUAL TABLE record_words_instance USING fts5vocab (record_words, instance);
