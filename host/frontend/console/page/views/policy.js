// The policy: the rules in force, who may call what, why, and what a change would do. Nothing is put in force here.
import { h, put, uniqueID } from '../dom.js'
import { moment, number, t, term, who } from '../language.js'
import { badge, card, code, facts, head, may, problem, when } from '../parts.js'
import { post, segment } from '../server.js'
import { table } from '../table.js'

const parts = { rules, table: permissions, explain, try: attempt }
const frontends = ['mcp-http', 'mcp-stdio', 'terminal', 'slack', 'agent', 'console']
const permissionActions = { allow: 'allow', requires_confirmation: 'ask', deny: 'deny' }

export default function policy(page) {
  const at = Object.hasOwn(parts, page.path[0]) ? page.path[0] : 'rules'
  const tabs = h('nav', { class: 'tabs', 'aria-label': t('nav.policy') }, Object.keys(parts).map(name =>
    h('a', { href: name === 'rules' ? '#/policy' : `#/policy/${name}`, 'aria-current': name === at && 'page' }, t(`policy.${name}`))))
  const root = h('div', { class: 'stack' })
  put(page.root, head(t('nav.policy')), tabs, root)
  parts[at](page, root)
}

/** field is a control with its label. */
function field(label, control, hint) {
  control.id = uniqueID('policy')
  return h('div', { class: 'field' }, h('label', { for: control.id }, label), control, hint && h('p', { class: 'hint' }, hint))
}

function select(values, chosen) {
  return h('select', {}, values.map(([value, text]) => h('option', { value, selected: value === chosen }, text)))
}

const anyFrontend = chosen => select(frontends.map(name => [name, term('frontend', name)]), chosen)

/** short removes the zeros of a duration such as 10m0s. */
function short(duration) {
  return duration?.replace(/m0s$/, 'm').replace(/h0m$/, 'h')
}

/** place shows the file and line of a rule. */
function place(file, line) {
  return line > 0 && h('small', {}, `${file.split(/[\\/]/).at(-1)}:${line}`)
}

function matched(rule) {
  const fields = rule.matches.map(({ field, values }) => [t(`policy.field.${field}`), values.map((value, i) => [i > 0 && ', ', code(value)])])
  if (rule.when) fields.push([t('policy.field.when'), code(rule.when)])
  if (fields.length === 0) return t('policy.all')
  return h('ul', { class: 'terms' }, fields.map(([name, value]) => h('li', {}, h('span', { class: 'soft' }, `${name}: `), value)))
}

function effect(rule) {
  return [
    badge('effect', rule.action),
    rule.action === 'ask' && h('small', {}, t('policy.by', { who: rule.approvers || t('policy.self') }), rule.remember && ` ${t('policy.remember', { time: short(rule.remember) })}`),
    rule.reason && h('small', {}, rule.reason),
  ]
}

/** rules lists the rules in their order. */
function rules(page, root) {
  const text = h('input', { type: 'search', value: page.query.get('rule') ?? '', placeholder: t('policy.filterRules'), 'aria-label': t('policy.filterRules') })
  const note = h('div', { class: 'stack' })
  const foot = h('p', { class: 'hint' })
  let now = { rules: [], file: '' }
  const list = table({
    caption: t('policy.rules'), rowKey: row => row.name, empty: t('policy.noRules'),
    columns: [
      { label: t('policy.rule'), cell: row => [h('span', { class: 'soft' }, `${row.n}. `), h('strong', {}, row.name), place(now.file, row.line)] },
      { label: t('policy.matches'), cell: matched },
      { label: t('policy.does'), cell: effect },
      { label: t('policy.decided'), class: 'number wide', cell: row => number(row.decided) },
    ],
  })
  const show = () => {
    const wanted = text.value.trim().toLowerCase()
    list.update(now.rules.map((rule, i) => ({ n: i + 1, ...rule })).filter(rule => JSON.stringify(rule).toLowerCase().includes(wanted)))
  }
  put(root, note, h('div', { class: 'tools' }, text), list.element, foot)
  text.addEventListener('input', show)
  page.poll(10_000, async () => {
    now = await page.get('policy')
    put(note, now.broken && h('div', { class: 'problem' }, h('p', {}, t('policy.broken')), h('p', {}, now.broken)),
      h('p', { class: 'lead' }, t('policy.order'), ' ', t('policy.file'), ' ', code(now.file)))
    put(foot, t('policy.default'), ' ', badge('effect', now.default), ' ', t('policy.since', { at: moment(now.since), other: number(now.other) }))
    show()
  })
}

const columnName = column => column.kind === 'anyone' ? t('policy.anyone') : column.name

/** permissions is the table of callers and tools. */
function permissions(page, root) {
  const caller = h('input', { type: 'search', value: page.query.get('caller') ?? '', autocomplete: 'off' })
  const tool = h('input', { type: 'search', value: page.query.get('tool') ?? '', autocomplete: 'off' })
  const frontend = anyFrontend(page.query.get('frontend') ?? 'mcp-http')
  const sheet = h('div', { class: 'stack' })
  const more = h('button', { type: 'button', hidden: true, onclick: () => page.once(() => load(next)) }, t('policy.moreTools'))
  let rows = []
  let next, timer, asked = 0
  const load = async cursor => {
    const turn = ++asked
    const found = await page.get('policy/table', { caller: caller.value.trim(), tool: tool.value.trim(), frontend: frontend.value, cursor })
    if (turn !== asked) return
    rows = cursor ? [...rows, ...found.items] : found.items
    next = found.next
    more.hidden = !next
    put(sheet, found.columns.length ? matrix(found, rows, frontend.value) : h('p', { class: 'empty' }, t('policy.noCallers')),
      found.more > 0 && h('p', { class: 'hint' }, t('policy.moreCallers', { n: number(found.more) })))
  }
  const again = () => load().catch(error => error.name !== 'AbortError' && put(sheet, problem(error)))
  const soon = () => {
    clearTimeout(timer)
    timer = setTimeout(again, 200)
  }
  for (const control of [caller, tool]) control.addEventListener('input', soon)
  frontend.addEventListener('change', again)
  put(root, h('p', { class: 'hint' }, t('policy.tableAbout')),
    h('div', { class: 'search' }, field(t('policy.callerFilter'), caller), field(t('policy.toolFilter'), tool), field(t('column.frontend'), frontend)), sheet, more)
  page.once(load)
}

function matrix({ columns }, rows, frontend) {
  const list = table({
    caption: t('policy.table'), rowKey: row => row.tool, empty: t('policy.noTools'),
    columns: [
      { label: t('column.tool'), cell: row => [code(row.tool), h('small', {}, row.plugin)] },
      ...columns.map((column, i) => ({
        label: [columnName(column), h('small', {}, column.kind !== 'anyone' && t(`policy.kind.${column.kind}`))],
        cell: row => row.cells[i] && h('a', { class: 'cell', href: `#/policy/explain?${new URLSearchParams({ tool: row.tool, frontend, ...column.kind !== 'anyone' && { [column.kind]: column.name } })}`,
          title: row.cells[i].rules.join(' → ') }, verdict(row.cells[i])),
      })),
    ],
  })
  list.element.classList.add('matrix')
  list.update(rows)
  return list.element
}

function verdict({ permission }) {
  const action = permissionActions[permission]
  return action ? badge('effect', action) : h('span', { class: 'badge plain' }, t('policy.depends'))
}

/** explain is the form that explains why a caller may or may not call a tool. */
function explain(page, root) {
  const { query } = page
  const input = (name, more) => h('input', { name, autocomplete: 'off', value: query.get(name) ?? '', ...more })
  const tool = input('tool', { list: 'policy-tools', required: true })
  const tools = h('datalist', { id: 'policy-tools' })
  const frontend = anyFrontend(query.get('frontend') ?? 'mcp-http')
  const fields = { user: input('user'), group: input('group'), scope: input('scope'), tenant: input('tenant'), token: input('token'), email: input('email', { type: 'email' }) }
  const given = h('textarea', { rows: 3, spellcheck: false, placeholder: '{"path": "a.txt"}' })
  const answer = h('div', { class: 'result', 'aria-live': 'polite' })
  const words = control => control.value.split(',').map(word => word.trim()).filter(Boolean)
  const ask = async event => {
    event?.preventDefault()
    let values
    try {
      values = given.value.trim() ? JSON.parse(given.value) : undefined
    } catch {
      return put(answer, h('p', { class: 'problem' }, t('policy.noJSON')))
    }
    try {
      const told = await post('policy/explain', { tool: tool.value.trim(), arguments: values, caller: {
        user: fields.user.value.trim(), email: fields.email.value.trim(), frontend: frontend.value, tenant: fields.tenant.value.trim(),
        token: fields.token.value.trim(), groups: words(fields.group), scopes: words(fields.scope) } }, page.signal)
      put(answer, explanation(told))
    } catch (error) {
      if (error.name !== 'AbortError') put(answer, problem(error))
    }
  }
  page.pages('tools').then(list => put(tools, list.map(({ name }) => h('option', { value: name }))), () => {})
  const mail = field(t('policy.email'), fields.email)
  const adapt = () => {
    mail.hidden = frontend.value !== 'slack'
    if (mail.hidden) fields.email.value = ''
  }
  frontend.addEventListener('change', adapt)
  adapt()
  put(root, h('div', { class: 'pair' },
    card(t('policy.explainTitle'), h('form', { onsubmit: ask }, tools,
      h('div', { class: 'search' }, field(t('column.tool'), tool), field(t('column.frontend'), frontend), field(t('policy.user'), fields.user),
        field(t('policy.groups'), fields.group), field(t('policy.scopes'), fields.scope), field(t('policy.tenant'), fields.tenant), field(t('column.token'), fields.token), mail),
      field(t('policy.arguments'), given, t('policy.argumentsAbout')),
      h('div', { class: 'actions' }, h('button', { type: 'submit', class: 'primary' }, t('policy.ask'))))),
    answer))
  if (tool.value) ask()
}

function decided(d) {
  return h('div', { class: 'verdict' },
    h('p', {}, badge('effect', d.action), ' ', ruleText(d.rule), d.line > 0 && ` ${t('policy.line', { line: d.line })}`),
    facts([
      [t('policy.field.when'), d.when && code(d.when)], [t('policy.missing'), d.missingScopes?.join(' ')], [t('policy.reason'), d.reason],
      [t('policy.approvers'), d.action === 'ask' && ([...d.approvers?.users ?? [], ...d.approvers?.groups ?? []].join(', ') || t('policy.self'))],
      [t('policy.rememberFor'), short(d.remember)], [t('policy.doubt'), d.doubt && code(d.doubt)],
    ]))
}

function ruleText(rule) {
  return term('ownrule', rule)
}

/** explanation shows what hako policy explain prints. */
function explanation(e) {
  return [
    h('h2', {}, e.decision ? t('policy.decision') : t('policy.dependsOn')),
    (e.decision ? [e.decision] : e.prospects).map(decided),
    !e.listed && h('p', { class: 'notice' }, t('policy.unlisted')),
    facts([[t('policy.groups'), e.groups?.join(', ')], [t('policy.scopes'), e.scopes?.join(' ')], [t('policy.employee'), e.employee], [t('policy.user'), e.user], [t('policy.tenant'), e.tenant]]),
    e.passed?.length > 0 && h('div', {}, h('h3', {}, t('policy.passed')),
      h('ul', { class: 'lines' }, e.passed.map(rule => h('li', {}, h('strong', {}, rule.rule), rule.line > 0 && ` ${t('policy.line', { line: rule.line })}`, h('br'), mismatch(rule))))),
  ]
}

function mismatch({ field, have, want = [], problem: trouble }) {
  const values = { field: t(`policy.field.${field}`), have, want: want.join(', '), trouble }
  if (field === 'missingScopes') return t('policy.not.scopes', { have: values.want })
  if (field === 'when') return [t(trouble ? 'policy.not.broken' : 'policy.not.when', values), ' ', code(values.want)]
  return t(have ? 'policy.not.other' : 'policy.not.none', values)
}

/** attempt checks a changed policy and tries it on recorded calls. */
function attempt(page, root) {
  if (!may(page.session, 'admin')) return put(root, h('p', { class: 'notice' }, t('needs.role', { role: term('role', 'admin') })))
  const text = h('textarea', { class: 'editor', rows: 18, spellcheck: false, autocomplete: 'off', autocapitalize: 'off' })
  const hours = select([[1, t('span.hour')], [24, t('span.day')], [168, t('span.week')]].map(([n, label]) => [String(n), label]), '24')
  const answer = h('div', { class: 'result', 'aria-live': 'polite' })
  const button = h('button', { type: 'submit', class: 'primary' }, t('policy.run'))
  const begin = async () => { text.value = (await page.get('policy/text')).text }
  const run = async event => {
    event.preventDefault()
    button.disabled = true
    put(answer, h('p', { class: 'hint' }, t('policy.running')))
    try {
      put(answer, trial(await post('policy/try', { text: text.value, hours: Number(hours.value) }, page.signal), text))
    } catch (error) {
      if (error.name !== 'AbortError') put(answer, problem(error))
    }
    button.disabled = false
    answer.scrollIntoView({ block: 'nearest' })
  }
  put(root, card(t('policy.tryTitle'), h('p', { class: 'hint' }, t('policy.tryAbout')),
    h('form', { onsubmit: run }, field(t('policy.text'), text),
      h('div', { class: 'actions' }, button, h('span', { class: 'of' }, field(t('policy.calls'), hours)), h('button', { type: 'button', onclick: () => page.once(begin) }, t('policy.inForce'))))), answer)
  page.once(begin)
}

/** trial shows the problems of the text, or the decisions that it would change. */
function trial({ problems, warnings, omitted, result, noLog }, text) {
  const line = wrong => h('li', {}, wrong.line > 0 && [h('button', { type: 'button', class: 'small', onclick: () => go(text, wrong.line) }, t('policy.at', wrong)), ' '], wrong.text)
  const more = omitted > 0 && h('p', { class: 'hint' }, t('policy.moreProblems', { n: omitted }))
  if (problems.length > 0) return [h('h2', { class: 'trouble' }, t('policy.invalid')), h('ul', { class: 'lines' }, problems.map(line)), more]
  return [
    h('h2', {}, t('policy.valid')),
    warnings.length > 0 && h('div', { class: 'notice' }, h('p', {}, t('policy.warnings')), h('ul', { class: 'lines' }, warnings.map(line)), more),
    noLog ? h('p', { class: 'notice' }, t('policy.noLog')) : effects(result),
    h('p', { class: 'hint' }, t('policy.putInForce')),
  ]
}

/** go selects a line of the text area. */
function go(text, wanted) {
  const lines = text.value.split('\n')
  const start = lines.slice(0, wanted - 1).join('\n').length + (wanted > 1 ? 1 : 0)
  text.focus()
  text.setSelectionRange(start, start + lines[wanted - 1].length)
  text.scrollTop = (wanted - 4) * parseFloat(getComputedStyle(text).lineHeight)
}

function effects(result) {
  const figures = ['changed', 'undecidable', 'same'].map(name => h('div', { class: 'figure' }, h('strong', {}, number(result[name])), h('span', {}, t(`policy.count.${name}`))))
  const list = table({
    caption: t('policy.changes'), rowKey: row => JSON.stringify(row), empty: '',
    columns: [
      { label: t('column.calls'), class: 'number', cell: row => number(row.calls) },
      { label: t('column.tool'), cell: row => [code(row.tool), h('small', {}, row.plugin)] },
      { label: t('policy.was'), cell: row => [badge('effect', row.from.action), h('small', {}, ruleText(row.from.rule))] },
      { label: t('policy.wouldBe'), cell: row => [badge('effect', row.to.action), h('small', {}, ruleText(row.to.rule), row.to.line > 0 && ` ${t('policy.line', { line: row.to.line })}`)] },
      { label: t('column.who'), cell: row => [who(row.caller), h('small', {}, term('frontend', row.caller.frontend))] },
      { label: t('policy.last'), class: 'wide', cell: row => [when(row.time), h('small', {}, h('a', { href: `#/audit?tool=${segment(row.tool)}` }, t('policy.record', { seq: row.seq })))] },
    ],
  })
  list.element.tabIndex = 0 // it may scroll, and has no link on a phone
  list.update(result.changes)
  const sum = key => {
    const counts = new Map()
    result.changes.forEach(change => counts.set(key(change), (counts.get(key(change)) ?? 0) + change.calls))
    return [...counts].toSorted((a, b) => b[1] - a[1]).slice(0, 5).map(([name, n]) => `${name} ${number(n)}`).join(', ')
  }
  return [
    h('p', { class: 'hint' }, t('policy.tried', { n: number(result.calls), at: moment(result.since) })),
    h('div', { class: 'figures' }, figures),
    result.cut && h('p', { class: 'notice' }, t('policy.cut', { at: moment(result.until) })),
    Object.entries(result.reasons).length > 0 && h('div', { class: 'notice' }, h('p', {}, t('policy.undecidable')),
      h('ul', { class: 'lines' }, Object.entries(result.reasons).map(([reason, n]) => h('li', {}, `${number(n)}: ${term('unknown', reason)}`)))),
    result.otherRule > 0 && h('p', { class: 'hint' }, t('policy.otherRule', { n: number(result.otherRule) })),
    result.changes.length > 0 && [
      facts([[t('policy.byTool'), sum(change => change.tool)], [t('policy.byCaller'), sum(change => who(change.caller))]]),
      list.element, result.omitted > 0 && h('p', { class: 'hint' }, t('policy.omitted', { n: number(result.omitted) })),
    ],
  ]
}
