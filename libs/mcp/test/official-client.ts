import { Client, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

export const MODERN = '2026-07-28';
export const LEGACY = '2025-11-25';
export type Revision = typeof MODERN | typeof LEGACY;
export const REVISIONS = [MODERN, LEGACY] as const;

/** The protocol's official TypeScript client, pinned to one revision. */
export interface OfficialClient {
  readonly client: Client;
  readonly skills: SkillsClient;
  readonly close: () => Promise<void>;
}

export async function connectOver(transport: Transport, revision: Revision): Promise<OfficialClient> {
  const mode = revision === MODERN ? { pin: MODERN } : 'legacy';
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
  await client.connect(transport);
  return { client, skills: new SkillsClient(client), close: () => client.close() };
}

export function connectHttp(url: URL, revision: Revision, headers: Readonly<Record<string, string>> = {}): Promise<OfficialClient> {
  return connectOver(new StreamableHTTPClientTransport(url, { requestInit: { headers: { ...headers } } }), revision);
}

/** @param stderr receives the program's stderr */
export async function connectStdio(
  program: { readonly command: string; readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> },
  revision: Revision,
  stderr: (text: string) => void = () => undefined,
): Promise<OfficialClient & { readonly pid: number | null }> {
  const transport = new StdioClientTransport({ ...program, args: [...program.args], env: { ...program.env }, stderr: 'pipe' });
  transport.stderr?.on('data', (chunk: Buffer) => stderr(chunk.toString()));
  const connected = await connectOver(transport, revision);
  return { ...connected, pid: transport.pid };
}
