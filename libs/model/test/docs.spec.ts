import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { parseScript, ScriptRule } from '../src/script.js';

const page = (name: string) => readFile(new URL(`../../../docs/${name}`, import.meta.url), 'utf8');

describe('the pages about models', () => {
  it('show scripts that are right', async () => {
    const scripts = [...(await page('scripted-model.md')).matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map((match) => match[1] ?? '');
    expect(scripts.map((script) => parseScript(script, 'the page').name)).toEqual(['weather']);
  });

  it('name every field of a rule', async () => {
    const scripts = await page('scripted-model.md');
    expect(Object.keys(ScriptRule.shape).filter((field) => !scripts.includes(`\`${field}`))).toEqual([]);
  });
});
