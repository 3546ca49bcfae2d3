import { describe, expect, it } from 'vitest';
import { ExecutionMemory, extractFact } from './execution-memory.js';

const read = (content: string) => JSON.stringify({ content, lines: 1 });

describe('extractFact', () => {
  it.each([
    ['fs_read', read('import os\n\ndef slug(text):\n    pass\n\nclass Page:\n    def own(self): pass\n'), 'File contains: slug, Page'],
    ['fs_read', read('export interface Row {}\nexport const LIMIT = 3;\nfunction own() {}'), 'File contains: Row, LIMIT'],
    ['fs_read', read('just a line\nand another'), 'File contains: just a line'],
    [
      'fs_search',
      JSON.stringify({ matches: ['a.py', 'a.py', 'b.py', 'c.py', 'd.py'].map((path) => ({ path, line: 1, text: 'x' })), names: [] }),
      'Found 4 files: a.py, b.py, c.py, ...',
    ],
    ['rag_query', JSON.stringify({ answer: 'At nine.', records: [] }), 'At nine.'],
    ['notes/list', 'n'.repeat(300), 'n'.repeat(200)],
  ])('reads what %s has shown', (tool, text, fact) => {
    expect(extractFact(tool, text)).toBe(fact);
  });
});

describe('ExecutionMemory', () => {
  it('shows its findings in three groups, without failures', () => {
    const memory = new ExecutionMemory();
    const outcomes = [
      { tool: 'fs_read', query: 'src/a.py:1-9', text: read('def a(): pass'), filePath: 'src/a.py' },
      { tool: 'fs_search', query: 'slug', text: JSON.stringify({ matches: [], names: ['slug.py'] }) },
      { tool: 'recall_fact', query: 'vault', text: 'nine' },
      { tool: 'fs_read', query: 'gone', text: 'Failed', success: false },
    ];
    for (const [at, outcome] of outcomes.entries()) memory.extractFrom({ step: at + 1, success: true, ...outcome });
    memory.add({ tool: 'fs_read', query: 'b.py', fact: 'File contains: b', step: 0, success: true });
    expect(memory.summary()).toBe(
      '# Execution Memory\n\n' +
        '**Files Already Read:**\n- src/a.py: File contains: a\n\n' +
        '**Previous Search Results:**\n- slug: Found 1 files: slug.py\n\n' +
        '**Other Findings:**\n- recall_fact (vault): nine\n\n' +
        '**From Earlier Tasks (files may differ here):**\n- fs_read (b.py): File contains: b',
    );
    expect(new ExecutionMemory().summary()).toBe('');
  });

  it('has a finding for an equal call that succeeded', () => {
    const memory = new ExecutionMemory();
    memory.add({ tool: 'fs_search', query: 'Slug  of', fact: 'Found 1 files: a.py', step: 1, success: true });
    expect(memory.hasFindingFor('fs_search', ' slug of ')).toMatchObject({ step: 1 });
    expect(memory.hasFindingFor('fs_read', 'slug of')).toBeNull();
    memory.add({ tool: 'fs_search', query: 'slug of', fact: '', step: 2, success: false });
    expect(memory.hasFindingFor('fs_search', 'slug of')).toBeNull();
  });
});
