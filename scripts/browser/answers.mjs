// A day in the life of a host, as answers of the console's API.
import { policies } from './policies.mjs'

const minute = 60_000
const ago = milliseconds => new Date(Date.now() - milliseconds).toISOString()
const digest = letter => `sha256:${letter.repeat(64)}`

/** session is that of somebody with role. */
export function session(role = 'admin', more = {}) {
  return {
    user: { name: 'aki@example.com', role, via: 'token', groups: [], expires: ago(-480 * minute) },
    csrf: 'c5rf', logins: { token: true, oidc: { name: 'Example SSO' }, link: false }, version: '1.4.0', ...more,
  }
}

/** signedOut is nobody's. */
export const signedOut = { user: null, logins: { token: true, oidc: { name: 'Example SSO' }, link: true }, version: '1.4.0' }

const tools = [
  ['get_weather', 'Weather forecast', 'weather', { readOnly: true, openWorld: true }, 1840, 12, 38],
  ['file_read', 'Read a file', 'files', { readOnly: true, openWorld: false }, 920, 4, 2.1],
  ['file_write', 'Write a file', 'files', { destructive: true, openWorld: false }, 212, 9, 4.8],
  ['shell_exec', 'Run a command', 'shell', { destructive: true, openWorld: true }, 64, 11, 860],
  ['list_employees', 'List employees', 'hr', { readOnly: true, openWorld: true }, 51, 0, 420],
  ['github_create_issue', 'Create an issue', 'github', { destructive: false, openWorld: true }, 17, 1, 640],
  ['delete_file', 'Delete a file', 'files', { destructive: true, openWorld: false }, 0, 0, null],
]

const offered = (name, tool, plugin, tokens, more) => ({ name, tool, plugin, tokens, ...more })
const supportTools = [
  offered('read_manual', 'file_read', 'files', 118, { pinned: true, fixed: [{ name: 'path', value: '"manuals/support.md"' }], hidden: ['offset', 'limit'] }),
  offered('get_weather', 'get_weather', 'weather', 264), offered('github_create_issue', 'github_create_issue', 'github', 431, { fixed: [{ name: 'repository', value: '"acme/help-desk"' }] }),
]
const support = {
  name: 'support', description: 'For the help desk', tools: 3, tokens: 813, search: false, resources: 4, prompts: 1, for: { groups: ['support', 'support-leads'] },
  problems: ['jira_* matches no tool, or only tools of earlier entries'],
}
const supportSet = {
  name: 'support', description: 'For the help desk', resources: ['files://*'], for: support.for,
  tools: [{ tool: 'file_read', rename: 'read_manual', fix: { path: 'manuals/support.md' }, hide: ['offset', 'limit'], pin: true }, { tool: 'get_*' }, { tool: 'jira_*' }],
}
const supportYAML = `toolsets:
  sets:
    support:
      description: For the help desk
      tools:
        - tool: file_read
          rename: read_manual
          fix:
            path: manuals/support.md
          hide: [offset, limit]
          pin: true
        - get_*
        - jira_*
      resources: ["files://*"]
      for:
        groups: [support, support-leads]
`

const wave = (i, top) => Math.max(0, Math.round(top * (0.55 + 0.3 * Math.sin(i / 17) + 0.15 * Math.sin(i / 3.1))))

function points() {
  return Array.from({ length: 360 }, (_, i) => {
    if (i < 20) return [0, 0, null, null, null]
    const calls = wave(i, 38)
    const slow = i > 230 && i < 262 ? 5 : 1
    return [calls, slow > 1 ? Math.round(calls * 0.3) : i % 13 === 0 ? 1 : 0, 2.4 * slow + i % 5 / 4, 31 * slow + i % 11, 78 * slow + i % 23]
  })
}

const tool = ([name, title, plugin, hints]) => ({ name, title, description: `${title}.`, plugin, upstream: plugin === 'github', ...hints })

const weatherSchema = {
  type: 'object', additionalProperties: false, required: ['location', 'days', 'notify'],
  properties: {
    location: { type: 'string', description: 'A place in Japan, in Japanese or English.', minLength: 1, maxLength: 100, examples: ['東京'] },
    days: { type: 'integer', minimum: 1, maximum: 7, default: 3, description: 'How many days to forecast.' },
    notify: { type: 'boolean', description: 'Tell the channel as well.' },
    unit: { type: 'string', enum: ['celsius', 'fahrenheit'], default: 'celsius' },
    threshold: { type: 'number', description: 'Warn above this.' },
    detailed: { type: 'boolean' },
    tags: { type: 'array', items: { type: 'string' }, description: 'Labels for the log.' },
    area: { $ref: '#/$defs/area' },
    when: { oneOf: [{ type: 'string' }, { type: 'object' }], description: 'A day, or a range.' },
  },
  $defs: { area: { type: 'object', required: ['code'], properties: { code: { type: 'string' }, radius: { type: 'number' } }, description: 'Instead of a place.' } },
}

const asksOfFiles = [
  'may read, change and delete the files in the folder that you choose as workspace, because: To work on your documents.',
  'may send GET, HEAD to https://mirror.example.com/, because: To fetch templates.',
]

const asksOfShell = [
  'may read, change and delete the files in the folder that you choose as workspace, because: Commands work on these files.',
  'may run those programs of your machine that you name, on the files in these folders, because: That is its purpose.',
]

/** chooseShell is the form for a plugin that asks for what somebody has to choose. */
const chooseShell = {
  digest: digest('e'), files: [{ name: 'workspace', about: asksOfShell[0], write: true }], exec: { about: asksOfShell[1], programs: [] },
  http: [{ name: 'packages', about: 'may send GET, HEAD to https://packages.example.com/, because: To fetch what is missing.', url: 'https://packages.example.com/', credential: 'packages', configured: '' }],
  chosen: { mounts: { workspace: { dir: '', readOnly: false } }, http: { packages: { url: '', private: false, credential: '' } }, exec: { programs: null, env: null, connect: null, unconfined: false } },
}

const shellGets = ['http packages: may send GET, HEAD to https://packages.example.com/, with the credential packages', 'files /workspace: may read, change and delete what is in /srv/docs',
  'commands: may run git, ls, in these folders (without their quotas; not in those that hide a part), no network']

const limits = { time: '30s', cpu: '10000', memory: '64MiB', input: '4MiB', output: '4MiB', concurrency: '16', queue: '256', rate: '6000' }

function record(seq, more) {
  return {
    seq, time: ago(seq % 97 * 41_000), type: 'tools/call', who: { user: 'aki@example.com', frontend: 'mcp-http', session: '1a2b3c4d', address: '10.0.0.7', client: 'Claude 1.2' },
    plugin: 'weather', name: 'get_weather', outcome: 'ok', durationMs: 12.5 + seq % 60, decision: 'allow', inputBytes: 64, outputBytes: 2048, ...more,
  }
}

const running = [
  { id: 'call_RUN1', time: ago(74_000), method: 'tools/call', tool: 'list_employees', plugin: 'hr', frontend: 'mcp-http', user: 'aki@example.com', tenant: 'acme', client: 'Claude 1.2', elapsedMs: 74_200, replica: 'web-1 0123456789ab', step: 'http GET', progress: { share: 0.4, message: 'page 4 of 10' }, arguments: { month: '2026-10' } },
  { id: 'call_RUN2', time: ago(9_000), method: 'tools/call', tool: 'delete_file', plugin: 'files', frontend: 'slack', user: 'ken@example.com', tenant: '', elapsedMs: 9_100, question: 'apr_1', step: 'approval', replica: 'web-2 ba9876543210' },
]

const steps = [
  { name: 'policy', depth: 0, startMs: 0.1, durationMs: 0.2, attributes: { 'hako.policy.action': 'ask', 'hako.rule': 'ask about employees' } },
  { name: 'approval', depth: 0, startMs: 0.4, durationMs: 4200, attributes: { 'hako.approval.id': 'apr_0', 'hako.rule': 'ask about employees', 'hako.outcome': 'approved' } },
  { name: 'sandbox', depth: 0, startMs: 4201, durationMs: 3100, attributes: { 'hako.plugin': 'hr' } },
  { name: 'queue', depth: 1, startMs: 4201.2, durationMs: 310 },
  { name: 'instance', depth: 1, startMs: 4512, durationMs: 11.2 },
  { name: 'sql query', depth: 1, startMs: 4530, durationMs: 2.4 },
  { name: 'http GET', depth: 1, startMs: 4540, durationMs: 900, attributes: { 'server.address': 'api.freee.co.jp', 'http.response.status_code': 200, 'hako.output.bytes': 18_400, 'http.request.resend_count': 1 } },
  { name: 'http GET', depth: 1, startMs: 5450, durationMs: 1850, failure: '503', attributes: { 'server.address': 'api.freee.co.jp', 'http.response.status_code': 503, 'http.request.resend_count': 3 } },
]

const oneCall = {
  id: 'call_DONE', kept: true, steps, log: [{ timeMs: 5460, level: 'info', text: 'reading the months of 300 people' }, { timeMs: 7290, level: 'error', text: 'panic: runtime error: index out of range [3] with length 3' }],
  text: 'The plugin crashed during the call. Other calls are not affected.', remedy: 'Report it to the author of hr, with the error and the plugin’s log lines from the call’s page.',
  record: {
    seq: 0, time: ago(2 * minute), type: 'tools/call', who: { user: 'aki@example.com', tenant: 'acme', frontend: 'mcp-http', session: '1a2b3c4d', address: '10.0.0.7', client: 'Claude 1.2' }, plugin: 'hr', name: 'list_employees',
    outcome: 'trap', durationMs: 7301, decision: 'ask', rule: 'ask about employees', approval: { id: 'apr_0', by: 'mori', answer: 'yes' }, error: 'plugin hr stopped: wasm error: unreachable', traceId: '4bf92f3577b34da6a3ce929d0e0e4736', requestId: '7',
    fields: { month: '2026-10' }, inputBytes: 20,
  },
}

const failing = (tool, plugin, outcome, side, count, age, more) => ({
  tool, plugin, outcome, side, count, first: ago(170 * minute), last: ago(age * minute), text: '', remedy: '',
  example: { id: 'call_DONE', time: ago(age * minute), tool, plugin, user: 'aki@example.com', frontend: 'mcp-http' }, ...more,
})

const failures = {
  since: ago(190 * minute),
  items: [
    failing('list_employees', 'hr', 'trap', 'plugin', 2, 2, { text: 'The plugin crashed during the call. Other calls are not affected.', remedy: 'Report it to the author of hr, with the error and the plugin’s log lines from the call’s page.', error: 'plugin hr stopped: wasm error: unreachable' }),
    failing('get_weather', 'weather', 'tool_error', 'tool', 41, 3, { text: 'The tool reported an error.', remedy: 'The caller has the tool’s reason. The console shows it if audit.fields lists output_summary for the tool.' }),
    failing('shell_exec', 'shell', 'not_allowed', 'policy', 11, 5, { detail: 'no deletes from chat', text: 'The policy, a person or a missing approval of the plugin did not allow it.', remedy: 'hako policy explain shell_exec --as ken --frontend slack shows the reason. If the plugin waits for approval, approve it.' }),
    failing('get_weather', 'weather', 'timeout', 'limit', 12, 6, { text: 'The call took longer than its time limit.', remedy: 'See on the call’s page what it waited for, or raise plugin.weather.limits.time in hako.yaml.', error: 'plugin weather passed its time limit of 30s' }),
    failing('file_write', 'files', 'invalid_arguments', 'caller', 3, 19, { text: 'The arguments do not match the tool’s input schema.', remedy: 'The caller was told which arguments are wrong.' }),
  ],
}

/** answers are those of a busy host. */
export function answers(who = session()) {
  return {
    session: who, logout: {}, 'POST login': session(),
    overview: {
      plugins: { active: 5, pending: 1, revoked: 0, broken: 1, conflict: 0 }, tools: 23,
      calls: { perSecond: 3.42, failuresPerSecond: 0.11, lastMinute: 205, failedLastMinute: 7, inFlight: 2, p50Ms: 3.1, p95Ms: 40.2, p99Ms: 88 },
      approvals: { waiting: 3 }, upstreams: { up: 1, idle: 0, down: 1, connecting: 0, disabled: 0 }, replicas: 3, audit: { on: true, verified: ago(20 * minute), ok: true },
      problems: [
        { kind: 'plugin', name: 'files', state: 'pending', remedy: 'Look at what it asks for, and approve it.' },
        { kind: 'upstream', name: 'jira', state: 'down', text: 'connection refused' },
      ],
      build: { version: '1.4.0', go: 'go1.26.8', commit: 'abc' }, started: ago(190 * minute),
    },
    series: url => ({
      hour: { step: 10, from: ago(60 * minute), points: points(), replica: 'web-1 0123456789ab' },
      day: { step: 600, from: ago(1440 * minute), points: points().slice(0, 144) }, week: { step: 3600, from: ago(10_080 * minute), points: points().slice(0, 168) },
    })[url.searchParams.get('span') ?? 'hour'],
    'series/top': { items: tools.map(([name, , plugin, , calls, failures, p95Ms]) => ({ tool: name, plugin, calls, failures, p50Ms: 1, p95Ms, p99Ms: p95Ms, spark: Array.from({ length: 30 }, (_, i) => wave(i * 12 + name.length * 9, calls / 30)) })) },
    plugins: { items: [
      { name: 'files', version: '0.2.0', state: 'pending', title: 'Files in folders that you choose', reason: 'it asks for more than version 0.1.0, which was approved', digest: digest('a'), serving: digest('b'), tools: 7, running: 1, waiting: 0 },
      { name: 'hr', version: '0.1.0', state: 'active', title: 'Employees, attendance and overtime from freee HR, KING OF TIME or SmartHR', reason: '', digest: digest('c'), tools: 3, running: 0, waiting: 0 },
      { name: '', file: 'notes.wasm', version: '', state: 'broken', title: '', reason: 'notes.wasm is not a WebAssembly module: it begins with "<!do"', digest: digest('d'), tools: 0, running: 0, waiting: 0 },
      { name: 'shell', version: '0.1.0', state: 'active', title: 'Commands', reason: '', digest: digest('e'), tools: 1, running: 0, waiting: 0 },
      { name: 'weather', version: '1.2.0', state: 'active', title: 'Weather forecasts of the Japan Meteorological Agency', reason: '', digest: digest('f'), tools: 1, running: 1, waiting: 0 },
    ] },
    'plugins/files': {
      name: 'files', version: '0.2.0', state: 'pending', reason: 'it asks for more than version 0.1.0, which was approved', digest: digest('a'), serving: digest('b'), path: '/srv/hako/plugins/files.wasm',
      description: 'Files in folders that you choose.', license: 'Apache-2.0', asks: asksOfFiles, gets: ['files /workspace: may read, change and delete what is in /srv/docs'],
      tools: [{ name: 'file_read', title: 'Read a file', description: 'Reads a text file.' }, { name: 'file_write', title: 'Write a file', description: 'Writes a text file.' }],
      limits, config: [], consent: { version: '0.1.0', digest: digest('b'), approvedBy: 'aki', approvedAt: ago(90_000 * minute) },
      ask: { digest: digest('a'), version: digest('9'), asks: asksOfFiles, additions: ['templates: also asks to send GET, HEAD to https://mirror.example.com/'], additionsTo: '0.1.0', gets: ['files /workspace: may read, change and delete what is in /srv/docs', 'http templates: may send GET, HEAD to https://mirror.example.com/'], ready: true },
      choose: { ...chooseShell, digest: digest('a'), exec: undefined, http: [], chosen: { mounts: { workspace: { dir: '/srv/docs', readOnly: false } }, http: {}, note: '' } },
    },
    'plugins/shell': {
      name: 'shell', version: '0.1.0', state: 'pending', reason: 'it waits for your consent: hako plugin approve shell', digest: digest('e'), serving: '', path: '/srv/hako/plugins/shell.wasm',
      description: 'Commands on the files of a folder.', license: 'Apache-2.0', asks: asksOfShell, gets: [], tools: [{ name: 'shell_exec', title: 'Run a command', description: 'Runs a command.' }],
      limits, config: [{ key: 'shell.timeout', type: 'string', required: false, description: 'How long a command may take.' }], choose: chooseShell,
      ask: { digest: digest('e'), version: '', asks: asksOfShell, gets: [], ready: false, problem: 'plugin shell: mount "workspace" is not mapped to a folder',
        remedy: 'hako plugin approve shell --mount workspace=DIR --program NAME' },
    },
    'plugins/shell/review': { digest: digest('e'), version: digest('8'), asks: asksOfShell, gets: shellGets, ready: true },
    toolsets: {
      catalog: { tools: 412, tokens: 88_104, search: true, listed: 3, listedTokens: 471, resources: 12, prompts: 3 }, search: { tools: 100, tokens: 20_000 }, local: 'engineering',
      rules: [
        { groups: ['admins'], toolset: 'all' }, { frontends: ['slack'], channels: ['C0123456789'], toolset: 'support' },
        { tenants: ['acme'], frontends: ['mcp-http'], users: ['ken@example.com', 'mori@example.com'], toolset: 'support' },
      ],
      items: [{ name: 'engineering', description: 'Builds and repositories', tools: 140, tokens: 31_022, search: true, listed: 5, listedTokens: 980, resources: 0, prompts: 0, problems: [] }, support],
    },
    'toolsets/support': { ...support, set: supportSet, items: supportTools },
    'POST toolsets/rules/preview': (_, { rules }) => ({
      yaml: `toolsets:\n  rules:\n${rules.map(({ toolset }) => `    - toolset: ${toolset}\n`).join('')}`, current: 'toolsets:\n  rules:\n    - groups:\n        - admins\n      toolset: all\n',
      unreachable: rules.length > 3 ? [{ rule: 4, by: 2 }] : [],
    }),
    'POST toolsets/preview': { ...support, yaml: supportYAML.replace('get_*', 'get_*\n        - github_*'), current: supportYAML, items: supportTools, more: 0 },
    tools: { items: tools.map(tool) },
    'tools/get_weather': { ...tool(tools[0]), description: 'The forecast for a place in Japan, by the Japan Meteorological Agency.', inputSchema: weatherSchema },
    'POST tools/get_weather/call': (_, body) => ({
      outcome: 'ok', isError: false, durationMs: 38.4, structured: body.arguments,
      content: [{ type: 'text', text: '東京: 晴れ時々曇り, 17 °C / 9 °C' }, { type: 'image', mimeType: 'image/png', data: pixel },
        { type: 'resource', uri: 'file:///tokyo.txt', mimeType: 'text/plain', text: '晴れ' }],
    }),
    'approvals/apr_1/arguments': { json: '{\n  "command": "git push --force",\n  "force": true\n}' },
    'approvals/apr_3/rules': { before: 'ask before writing', file: '/etc/hako/hako.policy.proposed.yaml', rules: [
      { scope: 'arguments', yaml: '  - name: "always allow file_write for ken@example.com at mcp-http with these arguments (1a2b3c4d)"\n    action: allow\n    tools: ["file_write"]\n    frontends: ["mcp-http"]\n    users: ["ken@example.com"]\n    when: "tenant == \\"\\" && arguments == {\\"content\\":\\"# Today\\",\\"path\\":\\"notes/today.md\\"}"\n' },
      { scope: 'caller', yaml: '  - name: "always allow file_write for ken@example.com at mcp-http"\n    action: allow\n    tools: ["file_write"]\n    frontends: ["mcp-http"]\n    users: ["ken@example.com"]\n    when: "tenant == \\"\\""\n' },
      { scope: 'tool', yaml: '  - name: "always allow file_write"\n    action: allow\n    tools: ["file_write"]\n' },
    ] },
    'POST approvals/apr_3/rules': { file: '/etc/hako/hako.policy.proposed.yaml' },
    approvals: { items: [
      question('apr_1', 'shell_exec', {
        ask: 'Allow Run a command (shell_exec)?', about: 'Runs a program without a shell.', detail: 'git push --force',
        values: [{ name: 'command', text: 'git push --force' }, { name: 'force', text: 'yes' }], effects: ['It may change or delete things.', 'It reaches other systems.'],
      }, 4 * minute),
      { ...question('apr_2', 'append_rows', {
        ask: 'Allow Append rows (append_rows)?', about: '表の末尾に行を追加します。',
        values: [{ name: 'range', text: '勤怠!A1' }, { name: 'rows', columns: ['氏名', '時間'], rows: [['山田 太郎', '8:00'], ['佐藤 花子', '7:30']], cut: '… 120 rows with up to 2 columns in all' },
          { name: 'note', text: Array.from({ length: 30 }, (_, i) => `${i + 1} 行目の説明です。`).join('\n') }],
      }, 0.4 * minute), may: false, why: 'Only hr-admins may answer this.' },
      question('apr_3', 'file_write', {
        ask: 'Allow Write file (file_write)?', about: 'Creates a text file or, with overwrite, replaces one.',
        values: [{ name: 'path', text: 'notes/today.md' },
          { name: 'content', diff: ['  # Today', '  ', '- 09:00 Stand-up', '+ 09:30 朝会', '  10:00 Review', '… line 41', '- <b>old</b>', '+ ␦new'], cut: 'Compared with the current content. Lines added: 2, removed: 2.' },
          { name: 'overwrite', text: 'yes' }],
        effects: ['It may change or delete things.'],
      }, 3 * minute),
    ] },
    audit: url => ({ items: Array.from({ length: 14 }, (_, i) => record(12_345 - i, [
      {}, { name: 'file_write', plugin: 'files', decision: 'ask', rule: 'ask before writing', approval: { id: 'apr_0', by: 'yui', answer: 'approved' }, who: { user: 'ken@example.com', frontend: 'slack' } },
      { type: 'operator', action: 'plugin.approve', name: '', plugin: 'hr', decision: undefined, durationMs: undefined, who: { user: 'aki', frontend: 'terminal' }, detail: { version: '0.1.0' } },
      { name: 'shell_exec', plugin: 'shell', outcome: 'not_allowed', decision: 'deny', rule: 'no deletes from chat', who: { user: 'ken@example.com', frontend: 'slack' } },
    ][i % 4])).filter(row => !url.searchParams.has('asked') || row.approval), next: 'older' }),
    'audit/verification': { state: 'done', started: ago(20 * minute), finished: ago(20 * minute), ok: true, records: 12_345, segments: 2, first: 1, last: 12_345, head: `12345:${'ab'.repeat(32)}`, signed: 12_300, problems: [] },
    'audit/verify': { state: 'running' },
    errors: failures,
    'calls/running': { items: running, replica: 'web-1 0123456789ab' }, 'calls/finished': { items: [] }, 'calls/call_DONE': oneCall,
    'calls/call_RUN1': { id: 'call_RUN1', running: running[0], kept: true, steps: steps.slice(0, 1), log: [] },
    ...policies,
    configuration: {
      file: '/etc/hako/hako.yaml', reload: { can: true, pending: ['http.address'] },
      items: [['approvals.timeout', '5m0s', 'default'], ['audit.retain', '2160h', 'hako.yaml:14'], ['http.address', '0.0.0.0:8420', 'env HAKO_HTTP_ADDRESS', '127.0.0.1:8420'], ['limits.time', '20s', 'hako.yaml:22', '30s'], ['log.level', 'info', 'default'], ['outbound.proxy', '', 'default']].map(([key, value, origin, usual]) => ({ key, value, origin, default: usual })),
    },
    'configuration/reload': { changed: ['limits.time', 'policy'], needRestart: ['http.address'], unchanged: false },
    upstreams: { items: [
      { name: 'github', state: 'up', transport: 'http', prefix: 'github_', protocol: '2025-11-25', server: 'github-mcp-server', version: '0.20.1', tools: 12, prompts: 0, resources: 0, since: ago(180 * minute), omitted: ['tool merge_pr: denied by the list'], restarts: 0 },
      { name: 'jira', state: 'down', transport: 'stdio', prefix: '', tools: 0, since: ago(8 * minute), error: 'connection refused', retry: ago(-minute), restarts: 4 },
    ] },
    credentials: { items: [
      { name: 'freee', tenant: 'acme', provider: 'freee', state: 'ready', expires: ago(-300 * minute), renewed: ago(60 * minute), facts: { company_id: '1' } },
      { name: 'google', tenant: '', provider: 'google-service-account', state: 'reconnect', remedy: 'The consent has ended: hako connect google' },
    ] },
    replicas: { items: ['web-1', 'web-2', 'web-3'].map((host, i) => ({ id: `${i}123456789abcdef`, host, version: '1.4.0', started: ago(190 * minute), seen: ago(i === 2 ? 4 * minute : 2000), self: i === 0, lost: i === 2 })) },
    'plugin-folder': { dir: '/srv/hako/plugins', maxSize: 64 << 20, machines: 3 },
    index: {
      total: 231, items: [
        { index: 'https://tools.example.com/index.yaml', name: 'calendar', version: '2.1.0', title: '予定表 Calendar', description: 'Appointments of the team', asks: 'HTTPS to calendar.example.com, and a folder', license: 'MIT', publisher: 'Example K.K.', homepage: 'https://tools.example.com/calendar', reference: 'oci://registry.example.com/tools/calendar:2.1.0' },
        { index: 'https://tools.example.com/index.yaml', name: 'files', version: '0.3.0', title: 'Files', asks: 'A folder', publisher: 'Example K.K.', reference: 'https://tools.example.com/files.wasm', installed: '0.2.0' },
        { index: 'oci://registry.example.net/index:1', name: 'ca1endar', version: '', title: '', description: 'A calendar', asks: '', publisher: '', reference: 'oci://registry.example.net/ca1endar:1', resembles: 'calendar' },
      ],
      indexes: [
        { location: 'https://tools.example.com/index.yaml', title: 'Tools of Example', plugins: 230, fetched: ago(20_000) },
        { location: 'oci://registry.example.net/index:1', title: '', plugins: 1, fetched: ago(3 * 24 * 60 * minute), problem: 'lookup registry.example.net: no such host', omitted: ['line 12: Evil: the name must be 1 to 40 of a-z, 0-9 and "-", starting with a letter'] },
      ],
    },
    'POST index/read': {
      name: 'calendar', version: '2.1.0', description: 'Appointments of the team.', license: 'MIT', digest: digest('8'), size: 1_204_114, asks: ['may send GET to https://calendar.example.com/, because: To read appointments.'],
      tools: [{ name: 'calendar_list', title: 'List appointments', description: '' }], exists: false, from: `oci://registry.example.com/tools/calendar:2.1.0@${digest('9')}`,
    },
    'POST plugin-folder/read/file': {
      name: 'files', version: '0.3.0', description: 'Files in folders that you choose.', license: 'Apache-2.0', digest: digest('7'), size: 3_412_008, asks: asksOfFiles,
      tools: [{ name: 'file_read', title: 'Read a file', description: '' }, { name: 'file_write', title: 'Write a file', description: '' }], exists: true, before: '0.2.0',
    },
    slack: { items: [
      { name: 'acme', socketMode: true, state: 'up', since: ago(190 * minute) },
      { name: 'acme-labs', socketMode: false, state: 'down', since: ago(3 * minute), error: 'auth.test: invalid_auth' },
    ] },
    clients: { replica: 'web-1 0123456789ab', items: [
      { id: '', client: 'Inspector', version: '0.17', protocol: '2025-11-25', user: '', tenant: '', token: '', address: '', frontend: 'mcp-stdio', since: ago(12 * minute), here: true, calls: 3, requests: 0, streams: 0 },
      { id: 'a1'.repeat(32), client: 'claude-ai', version: '1.2', protocol: '2025-11-25', user: 'aki@example.com', tenant: 'acme', token: 'aki-laptop', address: '10.0.0.7', frontend: 'mcp-http', since: ago(95 * minute), used: ago(4000), here: true, calls: 1284, requests: 2, streams: 1 },
      { id: 'b2'.repeat(32), client: 'Visual Studio Code', version: '1.107.0', protocol: '2025-06-18', user: 'ken@example.com', tenant: 'acme', token: '', address: '10.0.4.21', frontend: 'mcp-http', since: ago(1500 * minute), used: ago(9 * minute), here: false, calls: 0, requests: 0, streams: 0 },
    ] },
    tokens: { items: [
      { id: 'hako_kB81xQ', name: 'ci-deploy', user: 'robot', tenant: 'acme', scopes: ['tools'], state: 'valid', expires: ago(-80 * 24 * 60 * minute), created: ago(10 * 24 * 60 * minute), creator: 'aki@example.com', used: ago(25 * minute) },
      { id: 'hako_x0Pq7_', name: 'mori-laptop', user: 'mori@example.com', role: 'approver', state: 'valid', created: ago(3 * 60 * minute), creator: 'aki@example.com' },
      { id: 'hako_0oaZ4-', name: 'old-agent', user: 'old-agent', state: 'revoked', created: ago(40 * 24 * 60 * minute), creator: 'ken@example.com', used: ago(2 * 24 * 60 * minute), revoked: ago(24 * 60 * minute), revoker: 'aki@example.com' },
      { name: 'break-glass', user: 'ops', role: 'admin', state: 'valid', setting: 'console.tokens' },
    ] },
    logins: { items: [
      { id: 'NODGF2RRXC6SF4LAZKOYX7DC2A', user: 'ken@example.com', tenant: 'acme', client: 'Visual Studio Code', scopes: ['tools', 'files'], created: ago(1500 * minute), expires: ago(-6 * 24 * 60 * minute) },
      { id: 'UQXKJ3T5W7ZC4OAEY2PMVLDR6B', user: 'mori@example.com', client: '', created: ago(9 * minute), expires: ago(-7 * 24 * 60 * minute) },
    ] },
    blocks: { issuers: ['https://login.example.com', 'https://partner.example.net/realms/staff'], items: [
      { user: 'yamada@example.com', issuer: 'https://login.example.com', blocked: ago(2 * 24 * 60 * minute), by: 'aki@example.com' },
    ] },
    'POST tokens': { text: `hako_${'R'.repeat(43)}`, token: { id: 'hako_RRRRRR', name: 'ci-test', user: 'ci-test', state: 'valid', expires: ago(-90 * 24 * 60 * minute), created: ago(0), creator: 'aki@example.com' } },
    sessions: { items: [{ user: 'aki@example.com', role: 'admin', via: 'token', address: '10.0.0.7', created: ago(20 * minute), seen: ago(1000), self: true }] },
  }
}

function question(id, name, description, left) {
  const facts = [{ name: 'Asked by', text: 'ken@example.com (claude-code 2.1.0, MCP over HTTP)' }, { name: 'Why', text: 'it writes (rule "ask before writing")' }, { name: 'May be answered by', text: 'the group hr-admins' }]
  return { id, tool: name, plugin: name.split('_')[0], description: { facts, ...description }, caller: { user: 'ken@example.com', tenant: '', frontend: 'mcp-http' }, rule: 'ask before writing', remember: '10m', asked: ago(minute), expires: ago(-left), may: true, why: '' }
}

/** call is one of the stream's. */
export function call(id, more = {}) {
  return { id, time: ago(0), method: 'tools/call', tool: 'get_weather', plugin: 'weather', frontend: 'mcp-http', user: 'aki@example.com', tenant: '', outcome: 'ok', failed: false, durationMs: 12.3, inputBytes: 64, outputBytes: 2048, decision: 'allow', ...more }
}

/** pixel is a small picture. */
export const pixel = 'iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAGElEQVR4nGNYHedBEmIY1TCqYVTDcNYAAKYnFVEB3t3EAAAAAElFTkSuQmCC'
