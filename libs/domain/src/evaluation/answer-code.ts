/** A model's answer, split into its code, with indentation, and the text around the code. */
export interface Answer {
  readonly thought: string;
  readonly code: string;
}

const PYTHON = new Set(['python', 'py', 'python3', 'py3', 'ipython']);
/** Matches a fence with its indentation and info string, the text inside, and the closing fence or the end of the text. */
const BLOCK = /^([ \t]*)(`{3,}|~{3,})[ \t]*([^`\n]*)\n([^]*?)(?:^[ \t]*\2[`~]*[ \t]*$|$(?![^]))/gm;
const STARTS_LIKE_CODE =
  /^\s*(?:@\w|(?:async )?(?:def|class) \w|import \w|from \S+ import |return\b|print\(|(?:if|while|with) .*:|for .* in .*:|[\w., ]+(?:: \w[^=]*)? ?=)/;

/**
 * Extracts the code from a model's answer. Returns null if there is none.
 *
 * From several blocks, one of a kind is taken: Python blocks if there are any, else unlabelled blocks, else other languages. A block that defines
 * `entryPoint` is preferred. Otherwise the last block is taken, because models correct themselves further down. But if it only uses names of an
 * earlier block, it is an example of use, and the earlier block is taken. An unclosed fence extends to the end. A text without fences is code if it
 * starts like code.
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

/** Names of the functions and classes that the code defines at its top level. */
export function definedNames(code: string): string[] {
  return [...code.matchAll(/^(?:async[ \t]+)?(?:def|class)[ \t]+([A-Za-z_]\w*)/gm)].map((match) => match[1]!);
}

/** Whether the code binds this name at its top level: by def, class, assignment or import. */
export function definesName(code: string, name: string): boolean {
  if (definedNames(code).includes(name)) return true;
  const bound = new RegExp(`^(?:${name}[ \\t]*(?::[^=\\n]+)?=[^=]|(?:from|import)\\b.*\\b${name}[ \\t]*(?:,|#|\\)|$))`, 'm');
  return bound.test(code);
}
