import { parsedJson } from '@etude/contracts/json';
/** What one call of a tool has shown. */
export interface Finding {
  readonly tool: string;
  /** What was asked: a path, a text, or the arguments as JSON. */
  readonly query: string;
  readonly fact: string;
  /** Number of the step that made the call. 0 for a finding of an earlier rollout. */
  readonly step: number;
  readonly success: boolean;
  readonly filePath?: string;
  /** Digest of the read file's content before the call. */
  readonly digest?: string;
}

/** A call of a tool. `text` is the tool's answer. */
type ToolStep = Omit<Finding, 'fact'> & { readonly text: string };

const SHOWN_PER_GROUP = 12;
const LINE_CHARS_MAX = 240;

/** The findings of one rollout, and findings of earlier rollouts that its first step recalled. Of equal calls, only the newest is kept. */
export class ExecutionMemory {
  readonly #findings = new Map<string, Finding>();

  add(finding: Finding): void {
    const key = keyOf(finding.tool, finding.query);
    // Deleting first moves the key to the end.
    this.#findings.delete(key);
    this.#findings.set(key, finding);
  }

  extractFrom({ text, ...step }: ToolStep): Finding {
    const finding = { ...step, fact: step.success ? extractFact(step.tool, text) : text.slice(0, 200) };
    this.add(finding);
    return finding;
  }

  /** The finding of an equal call that succeeded, or null. */
  hasFindingFor(tool: string, query: string): Finding | null {
    const finding = this.#findings.get(keyOf(tool, query));
    return finding?.success ? finding : null;
  }

  forget(isStale: (finding: Finding) => boolean): void {
    for (const [key, finding] of this.#findings) if (isStale(finding)) this.#findings.delete(key);
  }

  get all(): readonly Finding[] {
    return [...this.#findings.values()];
  }

  /** The section of the prompt, with the newest findings of each group. Empty without findings. */
  summary(): string {
    const known = this.all.filter(({ success, step }) => success && step > 0);
    const earlier = this.all.filter(({ success, step }) => success && step === 0);
    const groups = [
      ['**Files Already Read:**', known.filter(({ tool }) => tool === 'fs_read'), readLine],
      ['**Previous Search Results:**', known.filter(({ tool }) => tool === 'fs_search'), searchLine],
      ['**Other Findings:**', known.filter(({ tool }) => tool !== 'fs_read' && tool !== 'fs_search'), otherLine],
      ['**From Earlier Tasks (files may differ here):**', earlier, otherLine],
    ] as const;
    const parts = groups
      .filter(([, findings]) => findings.length > 0)
      .map(([title, findings, line]) => [title, ...findings.slice(-SHOWN_PER_GROUP).map((one) => `- ${cut(line(one))}`)].join('\n'));
    return parts.length === 0 ? '' : `# Execution Memory\n\n${parts.join('\n\n')}`;
  }
}

const keyOf = (tool: string, query: string) => `${tool} ${query.trim().toLowerCase().replaceAll(/\s+/g, ' ')}`;
const readLine = ({ filePath, query, fact }: Finding) => `${filePath ?? query}: ${fact}`;
const searchLine = ({ query, fact }: Finding) => `${query}: ${fact}`;
const otherLine = ({ tool, query, fact }: Finding) => `${tool} (${query}): ${fact}`;
const cut = (line: string) => {
  const flat = line.replaceAll(/\s+/g, ' ');
  return flat.length > LINE_CHARS_MAX ? `${flat.slice(0, LINE_CHARS_MAX)}...` : flat;
};

const FACT_CHARS_MAX = 200;
const NAMES_MAX = 12;
const PATHS_MAX = 3;

/** A short fact from a tool's answer, such as the functions of a file. `text` is the answer, which is JSON if the tool's output has fields. */
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

/** Definitions at the top level of Python, TypeScript and JavaScript, which a reader of the file can use. */
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
  const { matches = [], names = [] } = (parsedJson(text) ?? {}) as {
    matches?: ReadonlyArray<{ path?: unknown }>;
    names?: readonly unknown[];
  };
  return [...names, ...matches.map(({ path }) => path)].filter((path) => typeof path === 'string');
}

function answerFact(text: string): string {
  const answer = fieldOf(text, 'answer');
  return plainFact(answer ?? text);
}

function fieldOf(text: string, field: string): string | null {
  const value = (parsedJson(text) as Record<string, unknown> | null)?.[field];
  return typeof value === 'string' ? value : null;
}
