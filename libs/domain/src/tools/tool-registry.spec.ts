import { EtudeError } from '@etude/contracts/errors';
import { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineTool } from './tool-definition.js';
import { ToolRegistry } from './agent-tools.js';
import { never, startTools } from '../../test/tools-fixture.js';

const settings = ProceduralMemorySettings.parse({});

const echo = (run: (text: string) => Promise<string> = async (text) => text) =>
  defineTool({
    name: 'echo',
    title: 'Echo',
    description: 'Says it again.',
    input: z.strictObject({
      text: z.string().min(1).max(5),
      times: z.number().int().min(1).default(1),
      how: z.enum(['loud', 'low']).optional(),
    }),
    output: z.strictObject({ said: z.string() }),
    readOnly: true,
    idempotent: true,
    run: async ({ text, times }) => ({ success: true, result: { said: (await run(text)).repeat(times) } }),
  });

describe('ToolRegistry', () => {
  const { contextOf } = startTools();
  const call = (tool: ReturnType<typeof echo>, name: string, args: unknown) =>
    new ToolRegistry([tool]).call(name, args, contextOf(), never);

  it('returns an error for an unknown tool', async () => {
    expect(await call(echo(), 'x', {})).toEqual({ success: false, error: "Tool 'x' not found" });
  });

  it('publishes the schemas that it checks', async () => {
    const [tool] = new ToolRegistry([echo()]).list();
    expect(tool?.inputSchema).toMatchObject({
      type: 'object',
      required: ['text'],
      additionalProperties: false,
      properties: { text: { type: 'string', minLength: 1, maxLength: 5 }, times: { default: 1 }, how: { enum: ['loud', 'low'] } },
    });
    expect(tool?.outputSchema).toMatchObject({ type: 'object', required: ['said'] });
    expect(tool?.describe(settings)).toBe('Says it again.');
    expect(await call(echo(), 'echo', { text: 'a', times: 2 })).toEqual({ success: true, result: { said: 'aa' } });
  });

  it.each([
    [{}, '"text": Invalid input: expected string, received undefined.'],
    [{ text: 'a', times: 0 }, '"times": Too small'],
    [{ text: 'a', tone: 1 }, 'Unrecognized key: "tone"'],
    ['text', '"arguments": Invalid input'],
  ])('names the argument that is wrong in %j', async (args, complaint) => {
    expect(await call(echo(), 'echo', args)).toEqual({ success: false, error: expect.stringContaining(complaint) });
  });

  it('returns errors of the caller and throws errors of the system', async () => {
    const failing = (code: 'FAILED_PRECONDITION' | 'SANDBOX_UNAVAILABLE' | 'CANCELLED') =>
      call(
        echo(() => Promise.reject(new EtudeError(code, 'because'))),
        'echo',
        { text: 'a' },
      );
    expect(await failing('FAILED_PRECONDITION')).toEqual({ success: false, error: 'because' });
    await expect(failing('SANDBOX_UNAVAILABLE')).rejects.toMatchObject({ code: 'SANDBOX_UNAVAILABLE' });
    await expect(failing('CANCELLED')).rejects.toMatchObject({ code: 'CANCELLED' });
    await expect(
      call(
        echo(() => Promise.reject(new TypeError('ours'))),
        'echo',
        { text: 'a' },
      ),
    ).rejects.toThrow('ours');
  });
});

describe('agentTools', () => {
  it('have ten fixed names and schemas of objects', () => {
    const tools = startTools().registry.list();
    expect(tools.slice(0, 10).map(({ name }) => name)).toEqual([
      'code_interpreter',
      'search',
      'use_skill',
      'execute_code',
      'load_functions',
      'register_skill',
      'write_todos',
      'recall',
      'remember',
      'list_skill_categories',
    ]);
    for (const { inputSchema, outputSchema } of tools) {
      expect([inputSchema['type'], outputSchema['type']]).toEqual(['object', 'object']);
      expect(JSON.stringify(inputSchema)).not.toContain('"$ref":"#"');
    }
  });

  it('advise to search first if the settings prefer skills', () => {
    const { registry } = startTools();
    const said = (preferSkills: boolean) =>
      registry
        .list()
        .map((tool) => tool.describe({ ...settings, enabled: true, preferSkills, skillSearchThreshold: 0.85 }))
        .join('\n');
    expect(said(true)).toMatch(/Search first[\s\S]*above 0\.85[\s\S]*otherwise execute[\s\S]*Register what worked/);
    expect(said(false)).not.toContain('Search first');
  });
});
