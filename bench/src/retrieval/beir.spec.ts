import { describe, expect, it } from 'vitest';
import { parseDocumentLine, parseJudgementLine, parseQueryLine } from './beir.js';

const at = (line: number) => ({ file: 'x', line });

describe('BEIR lines', () => {
  it('are read with what else stands in them left out', () => {
    expect(parseDocumentLine('{"_id":"d1","title":"T","text":"words","metadata":{}}', at(1))).toEqual({
      id: 'd1',
      title: 'T',
      text: 'words',
    });
    expect(parseDocumentLine('{"_id":"d1","text":""}', at(1))).toEqual({ id: 'd1', title: '', text: '' });
    expect(parseQueryLine('{"_id":"q1","text":"words"}', at(1))).toEqual({ id: 'q1', text: 'words' });
    expect(parseJudgementLine('q1\td1\t2', at(2))).toEqual({ query: 'q1', document: 'd1', grade: 2 });
    expect(parseJudgementLine('query-id\tcorpus-id\tscore', at(1))).toBeNull();
  });

  it.each([
    [() => parseDocumentLine('{"_id":"d1"', at(7)), /^x:7 is not JSON/],
    [() => parseDocumentLine('{"_id":7,"text":""}', at(7)), /^x:7 has a wrong "_id"/],
    [() => parseDocumentLine('[]', at(7)), /^x:7 is wrong/],
    [() => parseQueryLine('{"_id":"q","text":""}', at(3)), /^x:3 has a wrong "text"/],
    [() => parseJudgementLine('q1 d1 1', at(2)), /^x:2 has 1 columns/],
    [() => parseJudgementLine('q1\td1\tgood', at(2)), /^x:2 has the grade "good"/],
    [() => parseJudgementLine('q1\td1\t', at(2)), /^x:2 has the grade ""/],
  ])('say where they are wrong', (parse, message) => {
    expect(parse).toThrow(message);
  });
});
