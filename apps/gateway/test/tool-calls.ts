import type { JsonObject } from '@bufbuild/protobuf';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import type { GatewayRig, KeyName } from './gateway.harness.js';

/** The caller; default: agent "coder" of tenant "acme". */
export interface Caller {
  readonly key?: KeyName;
  readonly agent?: string;
  readonly user?: string;
  readonly session?: string;
  readonly requestId?: string;
}

/** Calls tools of a gateway. */
export const toolCalls =
  (rig: GatewayRig) =>
  async (tool: string, args: JsonObject, { key = 'acme', ...caller }: Caller = {}) => {
    const { success, result, error } = await rig.client(Tools, key).callTool({ tool, arguments: args, agent: 'coder', ...caller });
    return { success, error, result: (result ?? {}) as Record<string, unknown> };
  };
