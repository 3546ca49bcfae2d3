import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readTemplates } from './sandbox-template.js';

describe('a file of sandbox templates', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'etude-templates-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  const fileOf = async (name: string, text: string) => {
    const path = join(directory, name);
    await writeFile(path, text);
    return path;
  };

  it.each([
    ['templates.yaml', 'default:\n  image: python:1\n'],
    ['templates.json', '{"default": {"image": "python:1"}}'],
  ])('is read as %s', async (name, text) => {
    const templates = await readTemplates(await fileOf(name, text));
    expect(templates['default']).toMatchObject({ image: 'python:1', cpu: '1' });
  });

  it('is refused with its path where it can not be read', async () => {
    const path = await fileOf('templates.json', '{"default": ');
    await expect(readTemplates(path)).rejects.toThrow(`the sandbox templates could not be read from ${path}`);
  });

  it('is refused with the field that is wrong', async () => {
    const path = await fileOf('templates.json', '{"default": {"image": ""}}');
    await expect(readTemplates(path)).rejects.toThrow(/image/);
  });
});
