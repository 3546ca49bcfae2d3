import type { BeirDocument } from './beir.js';
import type { Embedder } from '@etude/domain/ports/model';
import { searchableText } from '@etude/domain/retrieval/entries';
import type { Candidate, Change, RecordStore } from '@etude/memory/record-store';
import type { JudgedQuery } from './beir-files.js';

const SCOPE = { tenant: 'retrieval', agent: 'retrieval', user: null };
const BATCH = 128;
/** The number of candidates for recall@100. */
const PLACES = 100;

export interface Answer {
  readonly query: JudgedQuery;
  readonly found: readonly Candidate[];
}

/** Puts every document into the semantic layer, as chunks of documents are. Returns their number. */
export async function fillStore(store: RecordStore, embedder: Embedder, corpus: AsyncIterable<BeirDocument>): Promise<number> {
  let count = 0;
  let batch: BeirDocument[] = [];
  const flush = async () => {
    count += batch.length;
    await store.write(SCOPE.tenant, await insertsOf(embedder, batch));
    batch = [];
  };
  for await (const document of corpus) {
    batch.push(document);
    if (batch.length === BATCH) await flush();
  }
  if (batch.length > 0) await flush();
  return count;
}

async function insertsOf(embedder: Embedder, documents: readonly BeirDocument[]): Promise<Change[]> {
  const texts = documents.map(({ title, text }) => searchableText([title, text].filter((part) => part !== '').join('\n')));
  const vectors = await embedder.embed(texts);
  return documents.map(({ id, title }, i) => {
    const text = texts[i] ?? '';
    const vector = vectors[i];
    return {
      do: 'insert',
      // All documents have the same time, so that age changes no rank.
      record: {
        layer: 'semantic',
        kind: 'chunk',
        key: id,
        scope: SCOPE,
        createdAt: 0,
        worth: 1,
        shown: true,
        fields: {},
        title,
        text,
        sources: [],
        body: '{}',
      },
      indexed: [{ text, vector: vector?.some((value) => value !== 0) ? vector : null }],
    };
  });
}

/** Asks for each query in turn. A document with the query's own id is left out, as BEIR does. */
export async function askStore(store: RecordStore, embedder: Embedder, queries: readonly JudgedQuery[]): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const query of queries) {
    const [vector = null] = await embedder.embed([query.text]);
    const found = await store.search(SCOPE, 'semantic', { kinds: ['chunk'], text: query.text, vector, limit: PLACES });
    answers.push({ query, found: found.filter(({ key }) => key !== query.id) });
  }
  return answers;
}
