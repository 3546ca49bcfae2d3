import { extractFact } from './extractors.js';

/** What one call of a tool has shown. */
export interface Finding {
  readonly tool: string;
  /** What was asked: a path, a text, or the arguments as JSON. */
  readonly query: string;
  readonly fact: string;
  /** The step of the call; 0 for a finding of an earlier rollout. */
  readonly step: number;
  readonly success: boolean;
  readonly filePath?: string;
  /** Of the file that was read, before the call. */
  readonly digest?: string;
}

export interface ToolStep {
  readonly tool: string;
  readonly query: string;
  readonly step: number;
  readonly success: boolean;
  /** The tool's answer as text. */
  readonly text: string;
  readonly filePath?: string;
  readonly digest?: string;
}

/** Findings shown in each group of the section. */
const SHOWN_PER_GROUP = 12;
const LINE_CHARS_MAX = 240;

/** The findings of one rollout, and those of earlier rollouts that its first step recalled. The newest of equal calls counts. */
export class ExecutionMemory {
  readonly #findings = new Map<string, Finding>();

  add(finding: Finding): void {
    const key = keyOf(finding.tool, finding.query);
    // Adding again moves it to the end.
    this.#findings.delete(key);
    this.#findings.set(key, finding);
  }

  extractFrom({ text, ...step }: ToolStep): Finding {
    const finding = { ...step, fact: step.success ? extractFact(step.tool, text) : text.slice(0, 200) };
    this.add(finding);
    return finding;
  }

  /** The finding of an equal call that succeeded; null if there is none. */
  hasFindingFor(tool: string, query: string): Finding | null {
    const finding = this.#findings.get(keyOf(tool, query));
    return finding?.success ? finding : null;
  }

  /** Drops the findings for which `isStale` is true. */
  forget(isStale: (finding: Finding) => boolean): void {
    for (const [key, finding] of this.#findings) if (isStale(finding)) this.#findings.delete(key);
  }

  get all(): readonly Finding[] {
    return [...this.#findings.values()];
  }

  /** The section of the prompt, newest findings of each group; empty without findings. */
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

/** Findings are equal if their tools are, and their queries but for case and white space. */
const keyOf = (tool: string, query: string) => `${tool} ${query.trim().toLowerCase().replaceAll(/\s+/g, ' ')}`;
const readLine = ({ filePath, query, fact }: Finding) => `${filePath ?? query}: ${fact}`;
const searchLine = ({ query, fact }: Finding) => `${query}: ${fact}`;
const otherLine = ({ tool, query, fact }: Finding) => `${tool} (${query}): ${fact}`;
const cut = (line: string) => {
  const flat = line.replaceAll(/\s+/g, ' ');
  return flat.length > LINE_CHARS_MAX ? `${flat.slice(0, LINE_CHARS_MAX)}...` : flat;
};
