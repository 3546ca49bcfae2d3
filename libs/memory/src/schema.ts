/** Raise it with every change below; a file of another version is refused. */
export const SCHEMA_VERSION = 1;
/** "Etud": marks the file as ours. */
export const APPLICATION_ID = 0x4574_7564;

/**
 * Records are JSON, whole; the columns beside it are what they are looked up by.
 *
 * Every table with data of a tenant has its number in `tenant`. `agent` and `user` are numbers of `principal`; user 0 is none.
 * `entry` is one searchable row, with its vector and its words under the same id. Words carry the tenant's number in front
 * (see `word-index.ts`), so that one tenant's word lists hold nothing of another's. What is only shown is kept in
 * `entry_text`: ranking reads many narrow rows.
 * Vectors are kept in chunks per tenant and layer; small chunks keep small tenants small (128 x 384 floats are 192 KiB).
 */
export const createSchema = (dimension: number): string => `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tenant (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE principal (
  id INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (tenant, kind, name)
);
CREATE TABLE applied (
  tenant INTEGER NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (tenant, kind, id)
) WITHOUT ROWID;

CREATE TABLE transition_record (
  row INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, agent INTEGER NOT NULL, user INTEGER NOT NULL,
  id TEXT NOT NULL, rollout TEXT NOT NULL, attempt INTEGER NOT NULL, json TEXT NOT NULL, UNIQUE (tenant, id)
);
CREATE INDEX transition_by_rollout ON transition_record (tenant, rollout, attempt);
CREATE TABLE episode_record (
  row INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, agent INTEGER NOT NULL, user INTEGER NOT NULL,
  id TEXT NOT NULL, created_at INTEGER NOT NULL, json TEXT NOT NULL, UNIQUE (tenant, id)
);
CREATE INDEX episode_by_time ON episode_record (tenant, created_at DESC);
CREATE TABLE fact_record (
  row INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, agent INTEGER NOT NULL, user INTEGER NOT NULL,
  id TEXT NOT NULL, created_at INTEGER NOT NULL, json TEXT NOT NULL, UNIQUE (tenant, agent, user, id)
);
CREATE INDEX fact_by_time ON fact_record (tenant, created_at DESC);
CREATE TABLE skill_record (
  row INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, agent INTEGER NOT NULL, user INTEGER NOT NULL,
  name TEXT NOT NULL, version INTEGER NOT NULL, digest TEXT NOT NULL, status TEXT NOT NULL, json TEXT NOT NULL,
  UNIQUE (tenant, agent, name, version), UNIQUE (tenant, agent, name, digest)
);
CREATE INDEX skill_by_name ON skill_record (tenant, name, agent, version);
CREATE TABLE skill_fingerprint (
  row INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, fingerprint TEXT NOT NULL, skill INTEGER NOT NULL,
  UNIQUE (tenant, fingerprint, skill)
);
CREATE INDEX fingerprint_by_skill ON skill_fingerprint (tenant, skill, row);
CREATE TABLE layer_size (
  tenant INTEGER NOT NULL, layer TEXT NOT NULL, entries INTEGER NOT NULL, words INTEGER NOT NULL, PRIMARY KEY (tenant, layer)
) WITHOUT ROWID;

CREATE TABLE entry (
  id INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, layer TEXT NOT NULL, agent INTEGER NOT NULL, user INTEGER NOT NULL,
  shown INTEGER NOT NULL, kind TEXT NOT NULL, record INTEGER NOT NULL, created_at INTEGER NOT NULL, worth REAL NOT NULL,
  word_count INTEGER NOT NULL
);
CREATE TABLE entry_text (
  id INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, title TEXT NOT NULL, text TEXT NOT NULL, sources TEXT NOT NULL
);
CREATE INDEX entry_by_record ON entry (tenant, layer, record);
CREATE VIRTUAL TABLE entry_vector USING vec0 (
  id INTEGER PRIMARY KEY, tenant INTEGER PARTITION KEY, layer TEXT PARTITION KEY,
  embedding float[${dimension}] distance_metric=cosine,
  agent INTEGER, user INTEGER, shown BOOLEAN, chunk_size=128
);
CREATE VIRTUAL TABLE entry_words USING fts5 (
  words, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* Co'"
);
CREATE VIRTUAL TABLE entry_words_row USING fts5vocab (entry_words, row);
CREATE VIRTUAL TABLE entry_words_instance USING fts5vocab (entry_words, instance);
`;
