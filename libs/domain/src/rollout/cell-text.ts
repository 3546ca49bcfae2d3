import type { WorkCellOutcome } from '../ports/work-sandboxes.js';
import { endingOf } from '../tools/execute-code.js';
import { cutMiddle } from '../evaluation/evaluator.js';

const STREAM_CHARS_MAX = 20_000;
const DISPLAY_CHARS_MAX = 8_000;

/** What a cell printed and showed, and how it ended, as the model reads it. */
export function cellText(outcome: WorkCellOutcome): string {
  const { stdout, stderr, displays, exit, stateLost } = outcome;
  const shown = displays.map((display) => {
    const text = display['text/plain'];
    const images = Object.keys(display).filter((type) => type.startsWith('image/'));
    const named = images.length === 0 ? '' : ` [${images.join(', ')}, not shown]`;
    return `${cutMiddle(typeof text === 'string' ? text : '', DISPLAY_CHARS_MAX)}${named}`;
  });
  const parts = [cutMiddle(stdout.trimEnd(), STREAM_CHARS_MAX), cutMiddle(stderr.trimEnd(), STREAM_CHARS_MAX), ...shown];
  const { error, ...ended } = outcome;
  // A traceback tells how the code failed, but not that a limit ended it.
  if (exit === 'nonzero' && error !== undefined) parts.push(stderr === '' ? endingOf(outcome) : '');
  else if (exit !== 'ok') parts.push(endingOf(ended));
  if (stateLost) parts.push('The interpreter was restarted: names are lost but for the scratchpad, files are kept.');
  return parts.filter((part) => part !== '').join('\n') || '(no output)';
}
