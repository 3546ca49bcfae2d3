import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SENTENCE_MODEL } from '@etude/contracts/embedder-names';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../test/temporary-folder.js';
import { readSettings } from '../cli.js';
import { EXIT } from '../errors.js';
import { chooseEmbedder, embedderEnvironment, recordedEmbedder, settleEmbedder } from './embedder.js';

function machine({ fetched, ...environment }: { fetched: boolean; [setting: string]: string | boolean }) {
  const root = temporaryFolder();
  const folder = join(root, '.etude/cache/embedder');
  mkdirSync(folder, { recursive: true });
  for (const { name, bytes } of fetched ? SENTENCE_MODEL.files : []) {
    writeFileSync(join(folder, name), '');
    truncateSync(join(folder, name), bytes);
  }
  const notes: string[] = [];
  const out = { note: (text: string) => notes.push(text) };
  const cli = { root, home: join(root, '.etude'), settings: readSettings(environment as Record<string, string>), out };
  return { cli: cli as unknown as Parameters<typeof settleEmbedder>[0], folder, notes };
}

describe('chooseEmbedder', () => {
  it('takes the sentence model where it was fetched', () => {
    const { cli, folder } = machine({ fetched: true });
    const choice = chooseEmbedder(cli);
    expect(choice).toMatchObject({ builtIn: 'sentence', cost: '', fix: '' });
    expect(embedderEnvironment(cli, choice)).toEqual({ ETUDE_EMBEDDER: 'sentence', ETUDE_EMBEDDER_PATH: folder });
  });

  it('goes by words where it was not, and says what that costs', () => {
    const { cli, notes } = machine({ fetched: false });
    expect(settleEmbedder(cli).environment).toMatchObject({ ETUDE_EMBEDDER: 'lexical' });
    expect(notes).toEqual([expect.stringMatching(/mostly missed.*embedder fetch/)]);
  });

  it('stays with what memory was made with, whatever is fetched later', () => {
    const { cli } = machine({ fetched: true });
    writeFileSync(join(cli.home, 'memory.sqlite'), '');
    expect(chooseEmbedder(cli)).toMatchObject({ builtIn: 'lexical', fix: expect.stringContaining('reembed') });
  });

  it('remembers what memory is made with', () => {
    const { cli, folder } = machine({ fetched: true });
    expect(recordedEmbedder(cli.home)).toBeNull();
    settleEmbedder(cli);
    expect(recordedEmbedder(cli.home)).toBe('sentence');
    rmSync(folder, { recursive: true });
    expect(() => chooseEmbedder(cli)).toThrow(
      expect.objectContaining({ exit: EXIT.unavailable, hint: expect.arrayContaining(['./etude embedder fetch']) }),
    );
  });

  it('remembers another one once memory works with it', () => {
    const { cli, folder } = machine({ fetched: true });
    settleEmbedder(cli).worked();
    const asked = { ...cli, settings: readSettings({ ETUDE_EMBEDDER: 'lexical' }) };
    const settled = settleEmbedder(asked);
    expect(recordedEmbedder(cli.home)).toBe('sentence');
    settled.worked();
    expect(recordedEmbedder(cli.home)).toBe('lexical');
    rmSync(folder, { recursive: true });
    expect(chooseEmbedder(cli)).toMatchObject({ builtIn: 'lexical' });
  });

  it('asks for the server whose model memory is searched with', () => {
    const { cli } = machine({ fetched: true });
    settleEmbedder({ ...cli, settings: readSettings({ ETUDE_EMBEDDING_MODEL: 'nomic' }) }).worked();
    expect(recordedEmbedder(cli.home)).toBe('nomic');
    expect(() => chooseEmbedder(cli)).toThrow(
      expect.objectContaining({ exit: EXIT.usage, message: expect.stringContaining('the embedding model nomic') }),
    );
  });

  it('refuses what is not there and what nobody knows', () => {
    expect(() => chooseEmbedder(machine({ fetched: false, ETUDE_EMBEDDER: 'sentence' }).cli)).toThrow('not in');
    expect(() => chooseEmbedder(machine({ fetched: true, ETUDE_EMBEDDER: 'word2vec' }).cli)).toThrow('auto, sentence or lexical');
  });
});
