import { z } from 'zod';

/** "a, b" as a list; nothing is an empty one. */
const names = z
  .string()
  .default('')
  .transform((text) =>
    text
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== ''),
  );

export const mcpConfig = z.object({
  /** MCP over streamable HTTP, at /mcp; 0: none. */
  ETUDE_MCP_PORT: z.coerce.number().int().min(0).max(65_535).default(0),
  ETUDE_MCP_HOST: z.string().min(1).default('127.0.0.1'),
  /** Names that clients may call it by, without ports, besides those of loopback; on other addresses, where none is named, any. */
  ETUDE_MCP_ALLOWED_HOSTS: names,
  /** Origins of websites whose requests are answered, such as "https://console.example.org". */
  ETUDE_MCP_ALLOWED_ORIGINS: names,
});
