import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { loadScript, parseScript, ScriptRule } from './script.js';

const complaint = (text: string) => {
  try {
    parseScript(text, 'demo.yaml');
  } catch (error) {
    return error as Error & { code: string };
  }
  return expect.fail('the script was taken');
};

describe('script files', () => {
  it('accept YAML and JSON', () => {
    const yaml = 'name: demo\nrules:\n  - match: hello\n    reply: |\n      hi\n      there\n';
    expect(parseScript(yaml, 'a')).toEqual(
      parseScript(JSON.stringify({ name: 'demo', rules: [{ match: 'hello', reply: 'hi\nthere\n' }] }), 'b'),
    );
  });

  it.each([
    ['rules:\n  - match: a\n    reply: x\n  - name: sum\n    replay: y\n', /Unrecognized key: "replay"\n  → at rules\[1\]/],
    ['rules:\n  - match: a\n', /exactly one answer.*\n  → at rules\[0\]/],
    ['rules:\n  - match: a\n    reply: x\n    status: 500\n', /exactly one answer/],
    ['rules:\n  - match: {regex: "(a"}\n    reply: x\n', /must be a text.*\n  → at rules\[0\]\.match/],
    ['rules: [\n', /^demo\.yaml: /],
    ['', /^demo\.yaml is wrong/],
  ])('are refused with the mistake in %j', (text, message) => {
    expect(complaint(text)).toMatchObject({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) });
  });

  it('are refused with the path of a missing file', async () => {
    await expect(loadScript('/nowhere/none.yaml')).rejects.toMatchObject({ message: expect.stringContaining('/nowhere/none.yaml') });
  });

  it('are shown in the docs without a mistake, with every field of a rule', async () => {
    const page = await readFile(new URL('../../../docs/scripted-model.md', import.meta.url), 'utf8');
    const scripts = [...page.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? '');
    expect(scripts.map((script) => parseScript(script, 'the page').name)).toEqual(['weather']);
    expect(Object.keys(ScriptRule.shape).filter((field) => !page.includes(`\`${field}`))).toEqual([]);
  });
});
