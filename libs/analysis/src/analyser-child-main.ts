import type { SkillFinding } from '@etude/contracts/skill-proof';
import { pythonAnalyser } from './find-in-text.js';
import { findSecrets } from './find-secrets.js';

export interface AnalyserTask {
  readonly text: string;
  readonly language: 'python' | 'text';
}

export type TextAnswer = { readonly findings: readonly SkillFinding[] } | { readonly failed: string };
export type ChildAnswer = 'ready' | TextAnswer;

const answer = (message: ChildAnswer) => process.send?.(message);

const findInPython = pythonAnalyser();
// Warms up, since the first text takes most of a second.
await findInPython('pass\n');

async function answerTo({ text, language }: AnalyserTask): Promise<TextAnswer> {
  try {
    const inPython = language === 'python' ? await findInPython(text) : [];
    return { findings: [...inPython, ...findSecrets(text)] };
  } catch (error) {
    // The stack of this process or the memory of the analyser is exhausted.
    const isTooMuch = ['RangeError', 'RuntimeError'].includes((error as Error).name);
    return { failed: isTooMuch ? 'it is nested too deep, or too large' : String(error).slice(0, 200) };
  }
}

process.once('disconnect', () => process.exit(0));
process.on('message', (task: AnalyserTask) => void answerTo(task).then(answer));
answer('ready');
