import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeFrame, FrameReader } from './frames.js';

describe('frames', () => {
  it('are read as they were written, however the stream is split', () => {
    fc.assert(
      fc.property(
        fc.array(fc.jsonValue(), { maxLength: 5 }),
        fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 60 }),
        (documents, cuts) => {
          const bytes = Buffer.concat(documents.map((document) => encodeFrame(document)));
          const reader = new FrameReader();
          const read: unknown[] = [];
          let at = 0;
          for (const cut of cuts) {
            read.push(...reader.feed(bytes.subarray(at, at + cut)));
            at += cut;
          }
          read.push(...reader.feed(bytes.subarray(at)));
          expect(JSON.stringify(read)).toBe(JSON.stringify(documents));
        },
      ),
    );
  });

  it('are refused when they are too long', () => {
    expect(() => new FrameReader().feed(Buffer.from([255, 255, 255, 255]))).toThrow(/over the limit/);
  });
});
