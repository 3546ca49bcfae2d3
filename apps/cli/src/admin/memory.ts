import { toJson } from '@bufbuild/protobuf';
import { type MemoryHit, SearchMemoryResponseSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { type Cli, withGateway } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { firstLine } from '../output.js';

export interface MemoryOptions {
  readonly layer?: readonly string[];
  readonly agent?: string;
  readonly limit: number;
  readonly explain?: boolean;
}

function hitText({ layer, kind, title, text, similarity, score, explanation, sources }: MemoryHit): string {
  const parts = Object.entries(explanation).map(([name, value]) => `${name} ${value.toFixed(3)}`);
  const lines = [
    `${layer} ${kind}  similarity ${similarity.toFixed(2)}  score ${score.toFixed(3)}  ${firstLine(title, 60)}`,
    `  ${firstLine(text, 110)}`,
  ];
  if (parts.length > 0) lines.push(`  score: ${parts.join(', ')}`);
  if (sources.length > 0) lines.push(`  from: ${sources.slice(0, 5).join(', ')}${sources.length > 5 ? ', …' : ''}`);
  return lines.join('\n');
}

export function searchMemory(cli: Cli, query: string, { layer = [], agent = '', limit, explain = false }: MemoryOptions): Promise<number> {
  return withGateway(cli, async (gateway) => {
    const request = { query, layers: [...layer], agent, limit, explain };
    const found = await gateway.memory.searchMemory(request, { timeoutMs: cli.callTimeoutMs, signal: cli.signal });
    cli.out.data(toJson(SearchMemoryResponseSchema, found), found.hits.map(hitText).join('\n'));
    if (found.hits.length === 0) cli.out.note('nothing found');
    return EXIT.ok;
  });
}
