const FACT_CHARS_MAX = 200;
const NAMES_MAX = 12;
const PATHS_MAX = 3;

/** Reads what is worth keeping of a tool's answer. `text` is the answer as text: JSON where the tool has fields. */
export function extractFact(tool: string, text: string): string {
  return (EXTRACTORS[tool] ?? plainFact)(text);
}

const EXTRACTORS: Readonly<Record<string, (text: string) => string>> = {
  fs_read: fileFact,
  fs_search: searchFact,
  rag_query: answerFact,
  recall_fact: answerFact,
  recall_procedure: answerFact,
  recall_similar_experience: answerFact,
};

const plainFact = (text: string) => text.slice(0, FACT_CHARS_MAX);

/** Definitions at the top level of Python, TypeScript and JavaScript: what a reader of the file can use. */
const DEFINITIONS =
  /^(?:export\s+(?:default\s+)?(?:abstract\s+|async\s+|declare\s+)*(?:function\*?|class|interface|type|enum|const|let)\s+(\w+)|(?:async\s+)?def\s+(\w+)|class\s+(\w+)|interface\s+(\w+))/gm;

function fileFact(text: string): string {
  const content = fieldOf(text, 'content') ?? text;
  const names = [...content.matchAll(DEFINITIONS)].map((found) => found.slice(1).find((name) => name !== undefined)!);
  const shown = [...new Set(names)];
  if (shown.length === 0) return `File contains: ${content.trim().split('\n', 1)[0]!.slice(0, FACT_CHARS_MAX)}`;
  return `File contains: ${shown.slice(0, NAMES_MAX).join(', ')}${shown.length > NAMES_MAX ? `, and ${shown.length - NAMES_MAX} more` : ''}`;
}

function searchFact(text: string): string {
  const paths = pathsOf(text);
  const unique = [...new Set(paths)];
  const more = unique.length > PATHS_MAX ? ', ...' : '';
  return `Found ${unique.length} files: ${unique.slice(0, PATHS_MAX).join(', ')}${more}`;
}

function pathsOf(text: string): string[] {
  const { matches = [], names = [] } = (parsed(text) ?? {}) as { matches?: ReadonlyArray<{ path?: unknown }>; names?: readonly unknown[] };
  return [...names, ...matches.map(({ path }) => path)].filter((path) => typeof path === 'string');
}

function answerFact(text: string): string {
  const answer = fieldOf(text, 'answer');
  return plainFact(answer ?? text);
}

function fieldOf(text: string, field: string): string | null {
  const value = (parsed(text) as Record<string, unknown> | null)?.[field];
  return typeof value === 'string' ? value : null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
