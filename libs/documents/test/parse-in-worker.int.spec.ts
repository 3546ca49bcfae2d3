import { deflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { MediaType } from '../src/document.js';
import { parseInWorker, type WorkerLimits } from '../src/parse-in-worker.js';
import { column, makePdf } from './make-pdf.js';

const never = new AbortController().signal;
const bytesOf = (text: string) => new TextEncoder().encode(text);
const parse = (bytes: Uint8Array | string, type: MediaType, limits: Partial<WorkerLimits> = {}, signal = never) =>
  parseInWorker(typeof bytes === 'string' ? bytesOf(bytes) : bytes, type, { name: 'file', ...limits }, signal);
const pages = [column(['Searching means to find one thing among others.'])];

/** A stream that unpacks to `mib` MiB. It is packed twice, since packing once leaves about a thousand bytes per MiB. */
function bomb(mib: number): { bytes: Uint8Array; entries: string } {
  const once = deflateSync(Buffer.alloc(mib * 2 ** 20, ' '));
  return { bytes: deflateSync(once), entries: '/Filter [/FlateDecode /FlateDecode]' };
}

describe('parseInWorker', () => {
  it('reads each kind of document', async () => {
    expect((await parse('# H\n\ntext', 'text/markdown')).sections).toEqual([{ headings: ['H'], text: 'text', page: null }]);
    expect((await parse('text', 'text/plain')).sections[0]?.text).toBe('text');
    expect((await parse('<p>text', 'text/html')).sections[0]?.text).toBe('text');
    expect((await parse(Buffer.from(makePdf({ pages })), 'application/pdf')).sections[0]).toMatchObject({
      page: 1,
      text: 'Searching means to find one thing among others.',
    });
  });

  it.each([
    [
      '100,000 arrays inside each other',
      makePdf({ pages, catalog: `/X ${'['.repeat(100_000)}` }),
      'application/pdf',
      'INVALID_ARGUMENT',
      /./,
    ],
    ['text that is not UTF-8', Uint8Array.of(0x61, 0xff), 'text/plain', 'INVALID_ARGUMENT', /not valid UTF-8/],
  ] as const)('says what is wrong with %s', async (_, bytes, type, code, message) => {
    await expect(parse(bytes, type)).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
  });

  it('ends a parser that unpacks more than fits', async () => {
    const bytes = makePdf({ pages, content: bomb(800) });
    expect(bytes.length).toBeLessThan(100_000);
    await expect(parse(bytes, 'application/pdf', { memoryMiB: 400 })).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      message: expect.stringMatching(/needs more than 400 MiB/),
    });
  });

  it('ends a parser that takes too long', async () => {
    // No process starts within a millisecond.
    await expect(parse('text', 'text/plain', { wallMs: 1 })).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
      message: expect.stringMatching(/not read within 1 ms/),
    });
  });

  it('ends a parser when it is cancelled', async () => {
    const controller = new AbortController();
    const parsing = parse('text', 'text/plain', {}, controller.signal);
    controller.abort();
    await expect(parsing).rejects.toMatchObject({ code: 'CANCELLED' });
    await expect(parse('text', 'text/plain', {}, controller.signal)).rejects.toMatchObject({ code: 'CANCELLED' });
  });

  it('reads a long book within the memory limit', async () => {
    const chapter = `# Chapter\n\n${'Prose with *some* `code` and [links](x).\n\n'.repeat(500)}`;
    const { sections } = await parse(chapter.repeat(20), 'text/markdown', { memoryMiB: 600 });
    expect(sections).toHaveLength(20);
  });
});
