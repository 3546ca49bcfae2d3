/** What a model said beside its code, and the code, with its leading indentation. */
export interface Answer {
  readonly thought: string;
  readonly code: string;
}

const PYTHON = new Set(['python', 'py', 'python3', 'py3', 'ipython']);
/** A fence, its indentation and its words, what is inside, and the closing fence or the end of the text. */
const BLOCK = /^([ \t]*)(`{3,}|~{3,})[ \t]*([^`\n]*)\n([^]*?)(?:^[ \t]*\2[`~]*[ \t]*$|$(?![^]))/gm;
const STARTS_LIKE_CODE =
  /^\s*(?:@\w|(?:async )?(?:def|class) \w|import \w|from \S+ import |return\b|print\(|(?:if|while|with) .*:|for .* in .*:|[\w., ]+(?:: \w[^=]*)? ?=)/;

/**
 * The code of a model's answer; null where it holds none.
 *
 * Python blocks come before unlabelled ones, and those before any other. Of several the last counts, since models correct
 * themselves downwards, with two exceptions: only blocks that define `entryPoint` count where one does, and a block that merely
 * uses what an earlier one defines is an example of use. A fence that is not closed reaches to the end. A text without a fence is
 * the code if it starts like code.
 */
export function extractAnswer(answer: string, entryPoint?: string): Answer | null {
  const text = answer.replaceAll('\r\n', '\n');
  const blocks = [...text.matchAll(BLOCK)]
    .map(([whole, indent = '', , info = '', inside = ''], at, all) => {
      const from = all[at]!.index;
      const thought = `${text.slice(0, from).trim()}\n\n${text.slice(from + whole.length).trim()}`.trim();
      const language = info.toLowerCase().split(/[\s{,:]/)[0] ?? '';
      return { language, thought, code: withoutBlankEnds(inside.replaceAll(new RegExp(`^${indent}`, 'gm'), '')) };
    })
    .filter(({ code }) => code !== '');
  const chosen = chooseBlock(blocks, entryPoint);
  if (chosen) return { thought: chosen.thought, code: chosen.code };
  return STARTS_LIKE_CODE.test(text) ? { thought: '', code: withoutBlankEnds(text) } : null;
}

const withoutBlankEnds = (text: string) => text.replace(/^(?:[ \t]*\n)+/, '').trimEnd();

function chooseBlock<B extends { language: string; code: string }>(blocks: readonly B[], entryPoint?: string): B | undefined {
  const python = blocks.filter(({ language }) => PYTHON.has(language));
  const unlabelled = blocks.filter(({ language }) => language === '');
  const fitting = [python, unlabelled, blocks].find((some) => some.length > 0) ?? [];
  const complete = entryPoint ? fitting.filter(({ code }) => definesName(code, entryPoint)) : [];
  const candidates = complete.length > 0 ? complete : fitting;
  const last = candidates.at(-1);
  if (!last || definedNames(last.code).length > 0) return last;
  const isUsed = (name: string) => new RegExp(`\\b${name}\\b`).test(last.code);
  return candidates.findLast(({ code }) => definedNames(code).some(isUsed)) ?? last;
}

/** Functions and classes that the code defines at its top level. */
export function definedNames(code: string): string[] {
  return [...code.matchAll(/^(?:async[ \t]+)?(?:def|class)[ \t]+([A-Za-z_]\w*)/gm)].map((match) => match[1]!);
}

/** Whether the code binds this name at its top level: by def, class, assignment or import. */
export function definesName(code: string, name: string): boolean {
  if (definedNames(code).includes(name)) return true;
  const bound = new RegExp(`^(?:${name}[ \\t]*(?::[^=\\n]+)?=[^=]|(?:from|import)\\b.*\\b${name}[ \\t]*(?:,|#|\\)|$))`, 'm');
  return bound.test(code);
}
