import type { JsonObject, MessageInitShape } from '@bufbuild/protobuf';
import type { CallToolResponseSchema, ToolDefinitionSchema } from '@etude/contracts/gen/etude/v1/tools_pb';
import type { ProceduralMemorySettings } from '@etude/contracts/skill-proof';
import type { ToolDefinition, ToolOutcome } from '@etude/domain/tools/tool-definition';

export function toolMessage(tool: ToolDefinition, settings: ProceduralMemorySettings): MessageInitShape<typeof ToolDefinitionSchema> {
  const { name, title, inputSchema, outputSchema, readOnly, idempotent } = tool;
  return {
    name,
    title,
    readOnly,
    idempotent,
    description: tool.describe(settings),
    inputSchema: plain(inputSchema),
    outputSchema: plain(outputSchema),
  };
}

export function outcomeMessage(outcome: ToolOutcome): MessageInitShape<typeof CallToolResponseSchema> {
  if (outcome.success) return { success: true, result: plain(outcome.result) };
  const { error, result } = outcome;
  return { success: false, error, ...(result === undefined ? {} : { result: plain(result), ...wishOf(result) }) };
}

/** Callers look for these beside `success` and `error`. */
function wishOf({ skill_request_submitted: skillRequestSubmitted, request_id: requestId }: Readonly<Record<string, unknown>>) {
  if (typeof skillRequestSubmitted !== 'boolean') return {};
  return { skillRequestSubmitted, ...(typeof requestId === 'string' ? { requestId } : {}) };
}

/** As JSON has it: without what is undefined, and with null for numbers that JSON does not know. */
const plain = (value: object): JsonObject => JSON.parse(JSON.stringify(value)) as JsonObject;
