import { existsSync } from 'node:fs';

const page = (text, link) => ({ text, link });
const pages = JSON.parse(process.env.ETUDE_DOCS_PAGES ?? '[]').map((file) => file.replace('.md', ''));
const titled = (name) => page(name === 'http' ? 'JSON over HTTP' : name[0].toUpperCase() + name.slice(1), `/docs/reference/api/${name}`);

/** A link out of the site, to a file of the project, is shown as the file's name. */
function nameFilesOfTheProject(md) {
  const inside = /^(#|https?:|mailto:|data:)|\.(md|svg|png)(#.*)?$|^\/(docs|openapi)/;
  const open = md.renderer.rules.link_open ?? ((tokens, at, options, _, self) => self.renderToken(tokens, at, options));
  md.core.ruler.push('files-of-the-project', ({ tokens }) => {
    for (const { children } of tokens)
      for (const [at, token] of (children ?? []).entries()) {
        if (token.type !== 'link_open' || inside.test(token.attrGet('href') ?? '')) continue;
        const end = children.findIndex((one, index) => index > at && one.type === 'link_close');
        token.type = 'text';
        token.tag = '';
        token.content = '';
        Object.assign(children[end], { type: 'text', tag: '', content: '' });
      }
  });
  md.renderer.rules.link_open = open;
}

/** Makes anchors like code hosts, because people read the pages on code hosts too. */
const slugify = (text) =>
  text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(/\s/g, '-');

/** Keeps diagrams and tables from being cut off: pages are wide, text blocks wrap, and code in tables breaks. */
const STYLE = `
:root { --vp-layout-max-width: 1600px; --vp-sidebar-width: 232px; }
.VPDoc .container .content .content-container, .VPDoc.has-aside .container .content .content-container { max-width: 900px; }
.VPDoc.has-aside .container .aside { max-width: 224px; padding-left: 24px; }
.vp-doc div.language-text pre code { white-space: pre-wrap; width: auto; }
.vp-doc [class*='language-'] code { font-size: 13px; }
.vp-doc td code { overflow-wrap: anywhere; white-space: normal; }
.vp-doc td:first-child code { white-space: nowrap; }`;

export default {
  title: 'Etude',
  description: 'Solves tasks by writing code, running it in a sandbox, and learning from what happened',
  lastUpdated: false,
  ignoreDeadLinks: 'localhostLinks',
  cleanUrls: false,
  head: [
    ['link', { rel: 'icon', href: 'data:,' }],
    ['style', {}, STYLE],
  ],
  // Pages are the project's own Markdown, in which braces and angle brackets are text.
  markdown: { html: true, anchor: { slugify }, config: nameFilesOfTheProject },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [page('Quick start', '/docs/quick-start'), page('API', '/docs/reference/api/tasks'), page('Operations', '/docs/operations')],
    sidebar: [
      {
        text: 'Use',
        items: [
          page('Quick start', '/docs/quick-start'),
          page('The API by example', '/docs/api'),
          page('Python', '/sdks/python/README'),
          page('TypeScript', '/sdks/typescript/README'),
          page('Agents', '/docs/agents'),
          page('Sandboxes', '/docs/sandboxes'),
          page('Skills', '/docs/skills'),
          page('Memory', '/docs/memory'),
          page('Learning', '/docs/learning'),
          page('Evaluators', '/docs/evaluators'),
          page('Tools', '/docs/tools'),
          page('MCP', '/docs/mcp'),
          page('Skills as folders', '/docs/skill-files'),
          page('Command line', '/docs/cli'),
          page('Errors', '/docs/errors'),
          page('Evaluation', '/docs/eval'),
          page('Models', '/docs/models'),
          page('Scripted model', '/docs/scripted-model'),
          ...(existsSync(new URL('../docs/console.md', import.meta.url)) ? [page('Console', '/docs/console')] : []),
        ],
      },
      {
        text: 'Operate',
        items: [
          page('Operations', '/docs/operations'),
          page('Kubernetes', '/docs/kubernetes'),
          page('Authentication', '/docs/authentication'),
          page('Embeddings', '/docs/embeddings'),
          page('When an alert fires', '/docs/runbook'),
          page('Upgrading', '/docs/upgrading'),
          page('Scale', '/docs/scale'),
          page('Performance', '/docs/performance'),
          page('Threat model', '/docs/security/threat-model'),
        ],
      },
      {
        text: 'Reference',
        items: [
          page('Commands', '/docs/reference/cli'),
          page('Settings', '/docs/reference/settings'),
          page('Error codes', '/docs/reference/errors'),
          page('Architecture', '/ARCHITECTURE'),
          page('Contributing', '/CONTRIBUTING'),
        ],
      },
      { text: 'API', items: pages.map(titled) },
    ],
  },
};
