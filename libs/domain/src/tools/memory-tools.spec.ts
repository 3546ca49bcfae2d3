import { describe, expect, it } from 'vitest';
import { startTools } from '../../test/tools-fixture.js';

describe('tools of memory', () => {
  it('find the kinds that each is for, with the origins that are not trusted', async () => {
    const { call } = startTools();
    expect(await call('recall_fact', { query: 'vault' })).toMatchObject({
      result: { answer: 'The vault opens at nine.', records: [{ kind: 'fact' }] },
    });
    expect(await call('rag_query', { query: 'chapter' })).toMatchObject({
      result: { records: [{ kind: 'chunk', text: 'Chapter one.', untrusted_origins: ['documents/d1'] }] },
    });
    expect(await call('recall', { query: 'all' })).toMatchObject({ result: { records: [{ kind: 'fact' }, { kind: 'chunk' }] } });
    expect(await call('recall_similar_experience', { query: 'all' })).toEqual({ success: true, result: { records: [] } });
  });

  it('remember a fact with its owner and source, once for each call', async () => {
    const { call, outbox } = startTools();
    const more = { user: 'ann', callId: 'c1' };
    for (let at = 0; at < 2; at += 1) await call('remember', { fact: 'The vault is blue.', subject: 'vault' }, {}, more);
    expect([...outbox.writes.values()]).toMatchObject([
      { kind: 'fact', fact: { text: 'The vault is blue.', subject: 'vault', source: 'told', scope: { agent: 'coder', user: 'ann' } } },
    ]);
    expect(await call('remember', { fact: '  ' })).toMatchObject({ success: false });
  });
});
