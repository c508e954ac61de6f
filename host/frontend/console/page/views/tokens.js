// Credentials for hako: bearer tokens of the store, which an admin creates and revokes here, those of the configuration, and logins of MCP clients. Below,
// blocked users, whose tokens and logins are refused whoever issued them.
import { decide, showDialog } from '../dialog.js'
import { h, put } from '../dom.js'
import { labelled } from '../field.js'
import { filters, has } from '../filters.js'
import { t, term, who } from '../language.js'
import { badge, card, code, copyText, dated, facts, head, may, problem, since } from '../parts.js'
import { post, segment } from '../server.js'
import { buttonColumn, table } from '../table.js'

const roles = ['viewer', 'approver', 'admin']
const lives = ['30', '90', '365', '']

export default function tokens(page) {
  if (!may(page.session, 'admin')) return put(page.root, head(t('nav.tokens')), problem({ role: 'admin' }))
  let items = []
  const narrow = filters(page, () => show())
  const text = narrow.search(t('tokens.filter'))
  const which = narrow.choice('state', t('column.state'), { '': t('tokens.all'), valid: term('state', 'valid'), expired: term('state', 'expired'), revoked: t('tokens.revoked') })
  const show = () => list.update(items.filter(row => (!which.value || which.value === (row.revoked ? 'revoked' : row.state)) &&
    has(text.value, row.name, row.id, row.user, row.setting, use(row))))
  const list = table({
    caption: t('nav.tokens'), rowKey: row => row.id || `${row.setting}/${row.name}`, page, narrow,
    empty: h('p', {}, t('tokens.empty')),
    columns: [
      { label: t('column.token'), by: 'name', cell: row => [h('strong', {}, row.name), h('small', {}, row.id ? code(`${row.id}…`) : row.setting), h('small', { class: 'narrow' }, use(row))] },
      { label: t('column.state'), cell: row => [state(row), h('small', { class: 'narrow' }, row.revoked || row.expires ? dated(row.revoked ?? row.expires) : t('tokens.never'))] },
      { label: t('tokens.for'), by: 'for', value: use, class: 'wide', cell: row => [use(row), row.user !== row.name && h('small', {}, row.user)] },
      { label: t('tokens.created'), by: 'created', down: true, class: 'wide nowrap', cell: row => row.created ? [dated(row.created), h('small', {}, row.creator)] : '–' },
      { label: t('column.used'), by: 'used', down: true, class: 'wide nowrap', cell: used },
      { label: t('tokens.end'), by: 'end', value: row => row.revoked ?? row.expires, class: 'wide nowrap', cell: ending },
      buttonColumn(t('tokens.revoke'), row => revoke(row, again), row => row.state === 'valid' && row.id),
    ],
  })
  const fresh = h('button', { type: 'button', class: 'primary', onclick: () => create(again) }, t('tokens.new'))
  const logins = loginTable(row => endLogin(row, again))
  const blocks = blockTable(row => unblock(row, again))
  const noIssuer = h('p', { class: 'hint', hidden: true }, t('blocks.noIssuer'))
  let issuers = []
  const block = h('button', { type: 'button', disabled: true, onclick: () => blockUser(issuers, again) }, t('blocks.block'))
  put(page.root, head(t('nav.tokens'), fresh), h('p', { class: 'hint' }, t('tokens.about')), h('div', { class: 'tools' }, text, which), list.element,
    card(t('logins'), h('p', { class: 'hint' }, t('logins.about')), logins.element),
    card(t('blocks'), h('p', { class: 'hint' }, t('blocks.about')), noIssuer, h('div', { class: 'row' }, block), blocks.element))
  const again = page.poll(10_000, async () => {
    const [tokens, active, blocked] = await Promise.all([page.get('tokens'), page.get('logins'), page.get('blocks')])
    items = tokens.items
    show()
    logins.update(active.items)
    blocks.update(blocked.items)
    issuers = blocked.issuers ?? []
    block.disabled = issuers.length === 0
    noIssuer.hidden = issuers.length > 0
  })
}

function loginTable(end) {
  return table({
    caption: t('logins'), rowKey: row => row.id, empty: t('logins.empty'),
    columns: [
      { label: t('column.client'), cell: row => [h('strong', {}, row.client || t('sessions.unnamed')), h('small', { class: 'narrow' }, who(row))] },
      { label: t('column.who'), class: 'wide', cell: who },
      { label: t('tokens.scopes'), class: 'wide', cell: row => row.scopes?.join(' ') ?? '–' },
      { label: t('column.since'), class: 'wide nowrap', cell: row => dated(row.created) },
      { label: t('tokens.end'), class: 'nowrap', cell: row => dated(row.expires) },
      buttonColumn(t('sessions.end'), end),
    ],
  })
}

function endLogin(row, again) {
  decide({
    title: t('logins.endTitle'), label: t('sessions.end'), danger: true,
    body: [h('p', {}, t('logins.endAbout')), facts([
      [t('column.client'), row.client || t('sessions.unnamed')], [t('column.who'), who(row)], [t('tokens.scopes'), row.scopes?.join(' ')],
      [t('column.since'), dated(row.created)], [t('tokens.end'), dated(row.expires)],
    ])],
    async act() {
      await post(`logins/${segment(row.id)}/end`)
      again()
    },
  })
}

function blockTable(undo) {
  return table({
    caption: t('blocks'), rowKey: row => `${row.issuer} ${row.user}`, empty: t('blocks.empty'),
    columns: [
      { label: t('column.who'), cell: row => [h('strong', {}, row.user), h('small', { class: 'narrow' }, row.issuer)] },
      { label: t('blocks.issuer'), class: 'wide', cell: row => row.issuer },
      { label: t('column.since'), class: 'wide nowrap', cell: row => dated(row.blocked) },
      { label: t('blocks.by'), class: 'wide', cell: row => row.by },
      buttonColumn(t('blocks.unblock'), undo),
    ],
  })
}

function blockUser(issuers, again) {
  const user = h('input', { type: 'text', maxlength: 256, autocomplete: 'off', spellcheck: 'false' })
  const issuer = choice([['', t('blocks.all')], ...issuers.map(url => [url, url])])
  const named = labelled({ name: t('tokens.user'), required: true, schema: { description: t('blocks.userAbout') } }, user)
  decide({
    title: t('blocks.title'), label: t('blocks.block'), danger: true,
    body: h('form', { onsubmit: event => event.preventDefault() }, h('p', {}, t('blocks.consequences')), named.element,
      issuers.length > 1 && labelled({ name: t('blocks.issuer'), schema: {} }, issuer).element),
    async act() {
      await post('blocks', { user: user.value.trim(), issuer: issuer.value })
      again()
    },
  })
  user.focus()
}

function unblock(row, again) {
  decide({
    title: t('blocks.unblockTitle'), label: t('blocks.unblock'),
    body: facts([[t('column.who'), row.user], [t('blocks.issuer'), row.issuer], [t('column.since'), dated(row.blocked)], [t('blocks.by'), row.by]]),
    async act() {
      await post('blocks/remove', { user: row.user, issuer: row.issuer })
      again()
    },
  })
}

function use(row) {
  return row.role ? t('tokens.console', { role: term('role', row.role) }) : t('tokens.client')
}

function state(row) {
  return row.revoked ? h('span', { class: 'badge plain' }, t('tokens.revoked')) : badge('state', row.state)
}

/** used is the last use. Uses of tokens of the configuration are not recorded, which is not the same as none. */
function used(row) {
  if (row.used) return since(row.used)
  return row.id ? t('tokens.unused') : t('tokens.notRecorded')
}

function ending(row) {
  if (row.revoked) return [dated(row.revoked), h('small', {}, row.revoker)]
  return row.expires ? dated(row.expires) : t('tokens.never')
}

function details(row) {
  return facts([
    [t('column.token'), row.name], [t('column.who'), row.user], [t('tokens.for'), use(row)], [t('tokens.tenant'), row.tenant], [t('tokens.scopes'), row.scopes?.join(' ')],
    [t('column.used'), used(row)], [t('tokens.end'), row.expires ? dated(row.expires) : t('tokens.never')],
  ])
}

function revoke(row, again) {
  decide({
    title: t('tokens.revokeTitle'), label: t('tokens.revoke'), danger: true, body: [h('p', {}, t('tokens.revokeAbout')), details(row)],
    async act() {
      await post(`tokens/${segment(row.id)}/revoke`)
      again()
    },
  })
}

function choice(options) {
  return h('select', {}, options.map(([value, text]) => h('option', { value }, text)))
}

/** create is the form for a new token; it shows the token afterwards. */
function create(again) {
  const text = () => h('input', { type: 'text', maxlength: 256, autocomplete: 'off', spellcheck: 'false' })
  const [name, user, tenant, scopes] = [text(), text(), text(), text()]
  const role = choice([['', t('tokens.client')], ...roles.map(role => [role, t('tokens.console', { role: term('role', role) })])])
  const life = choice(lives.map(days => [days, days ? t('tokens.days', { n: Number(days) }) : t('tokens.never')]))
  life.value = '90'
  const field = (control, key, hint, required) => labelled({ name: t(key), required, schema: { description: hint && t(hint) } }, control)
  const named = field(name, 'tokens.name', 'tokens.nameAbout', true)
  const ofClients = h('div', { class: 'stack' }, field(tenant, 'tokens.tenant').element, field(scopes, 'tokens.scopes', 'tokens.scopesAbout').element)
  role.addEventListener('change', () => { ofClients.hidden = role.value !== '' })
  const trouble = h('div', { role: 'alert' })
  const yes = h('button', { type: 'submit', class: 'primary' }, t('tokens.create'))
  const submit = async event => {
    event.preventDefault()
    if (name.value.trim() === '') return named.mark(t('tokens.nameMissing'))
    yes.disabled = true
    const client = role.value === ''
    try {
      const made = await post('tokens', {
        name: name.value.trim(), user: user.value.trim(), role: role.value,
        tenant: client ? tenant.value.trim() : '', scopes: client ? scopes.value.split(/\s+/).filter(Boolean) : [],
        ...life.value && { expires: new Date(Date.now() + Number(life.value) * 86_400_000).toISOString() },
      })
      dialog.close()
      showToken(made)
      again()
    } catch (error) {
      put(trouble, problem(error))
      yes.disabled = false
    }
  }
  const no = h('button', { type: 'button', onclick: () => dialog.close() }, t('cancel'))
  const dialog = showDialog({ title: t('tokens.new'), body: h('form', { onsubmit: submit },
    named.element, field(role, 'tokens.for').element, field(user, 'tokens.user', 'tokens.userAbout').element, ofClients,
    field(life, 'tokens.life').element, trouble, h('div', { class: 'row end' }, no, yes)) })
  name.focus()
}

/** showToken shows the text of a new token, once. */
function showToken({ text, token }) {
  const value = h('input', { type: 'text', readonly: true, value: text, 'aria-label': t('column.token'), class: 'secret', onfocus: () => value.select() })
  const said = h('span', { role: 'status' })
  const copy = h('button', { type: 'button', class: 'primary', onclick: async () => {
    value.select()
    put(said, await copyText(text))
  } }, t('copy'))
  const dialog = showDialog({ title: t('tokens.shown'), body: [
    h('p', { class: 'notice' }, t('tokens.once')), h('div', { class: 'row' }, value, copy), said,
    h('p', { class: 'hint' }, t(token.role ? 'tokens.useConsole' : 'tokens.useClient')), details(token),
  ], actions: [h('button', { type: 'button', onclick: () => dialog.close() }, t('tokens.done'))] })
  copy.focus()
}
