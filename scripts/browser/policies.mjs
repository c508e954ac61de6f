// A policy, as answers of the console's API.
const ago = milliseconds => new Date(Date.now() - milliseconds).toISOString()

const text = `version: 1
default: allow
groups:
  hr-admins: [U012ABCDEF, aki@example.com]
rules:
  - name: no deletes from chat
    action: deny
    tools: ["delete_*", "shell/*"]
    frontends: [slack]
`

const rules = [
  { name: 'no deletes from chat', action: 'deny', line: 6, matches: [{ field: 'tools', values: ['delete_*', 'shell/*'] }, { field: 'frontends', values: ['slack'] }], reason: 'Do this at a terminal.', decided: 3 },
  { name: 'writing needs a scope', action: 'deny', line: 11, matches: [{ field: 'tools', values: ['file_write'] }, { field: 'missingScopes', values: ['files:write'] }], decided: 12 },
  { name: 'small sheets', action: 'allow', line: 15, matches: [{ field: 'tools', values: ['write_rows_to_google_sheet'] }], when: 'size(arguments.rows) <= 20', decided: 88 },
  { name: 'ask before writing', action: 'ask', line: 19, matches: [], when: 'destructive || openWorld && !readOnly', approvers: 'the group hr-admins', remember: '10m0s', decided: 205 },
]

const columns = [{ kind: 'anyone' }, { kind: 'group', name: 'hr-admins' }, { kind: 'token', name: 'ci' }, { kind: 'user', name: 'ken@example.com' }]
const cell = (permission, ...rules) => ({ permission, rules })

function table(url) {
  const [caller, tool] = ['caller', 'tool'].map(name => url.searchParams.get(name) ?? '')
  const shown = columns.filter(column => (column.name ?? '').includes(caller))
  const rows = ['delete_file', 'file_read', 'file_write', 'get_weather', 'shell_exec'].filter(name => name.includes(tool)).map(name => ({
    tool: name, plugin: name.startsWith('shell') ? 'shell' : name === 'get_weather' ? 'weather' : 'files',
    cells: shown.map(column => name === 'file_write' ? column.name === 'ci' ? cell('allow', 'default') : cell('deny', 'writing needs a scope')
      : name === 'shell_exec' ? cell('depends', 'small sheets', 'ask before writing') : name === 'delete_file' ? cell('requires_confirmation', 'ask before writing') : cell('allow', 'default')),
  }))
  return { columns: shown, items: rows, more: caller ? 0 : 14 }
}

function explained(_, { tool, caller, arguments: given }) {
  const about = { tool, plugin: 'files', frontend: caller.frontend, user: caller.user, groups: caller.groups, scopes: caller.scopes, listed: caller.user !== 'ken' }
  if (caller.scopes.includes('files:write')) {
    return { ...about, ...given ? {} : { prospects: [{ action: 'allow', rule: 'small sheets', line: 15, when: 'size(arguments.rows) <= 20' }, { action: 'ask', rule: 'ask before writing', line: 19, approvers: { groups: ['hr-admins'] }, remember: '10m0s' }] },
      ...given && { decision: { action: 'allow', rule: 'default' }, passed: [] } }
  }
  return {
    ...about, decision: { action: 'deny', rule: 'writing needs a scope', line: 11, missingScopes: ['files:write'] },
    passed: [{ rule: 'no deletes from chat', line: 6, why: '', field: 'frontends', have: caller.frontend, want: ['slack'] },
      { rule: 'drafts', line: 9, why: '', field: 'when', want: ['arguments.path.startsWith("drafts/")'] }],
  }
}

const caller = { frontend: 'mcp-http', user: 'ken@example.com' }

function tried(_, { text }) {
  if (!text.startsWith('version: 1')) return { problems: [{ line: 2, column: 5, text: 'rules[0].action: must be allow, ask or deny' }, { text: 'version: must be 1, the version of this format' }], warnings: [] }
  return {
    problems: [], warnings: [{ line: 8, column: 13, text: 'rules[0].tools[0]: no tool is called "delete_*" now' }],
    result: {
      since: ago(24 * 3600_000), cut: false, calls: 1284, same: 1190, changed: 62, undecidable: 32, otherRule: 5, reasons: { arguments: 30, employee: 2 }, omitted: 0,
      changes: [
        { tool: 'file_write', plugin: 'files', caller, from: { action: 'ask', rule: 'ask before writing' }, to: { action: 'deny', rule: 'writing needs a scope', line: 11 }, calls: 60, seq: 4711, time: ago(90_000) },
        { tool: 'shell_exec', plugin: 'shell', caller: { frontend: 'slack', user: 'U012ABCDEF', tenant: 'acme' }, from: { action: 'deny', rule: 'destructive tools in chats' }, to: { action: 'allow', rule: 'default' }, calls: 2, seq: 4002, time: ago(7200_000) },
      ],
    },
  }
}

/** policies answers what the page Policy asks for. */
export const policies = {
  policy: () => ({ file: '/etc/hako/hako.policy.yaml', default: 'allow', rules, since: ago(3600_000), other: 940, names: {} }),
  'policy/table': table, 'POST policy/explain': explained, 'policy/text': { text }, 'POST policy/try': tried,
}
