// How the console behaves, over the fake: roles, approvals, live calls, forms, a server that goes away, a session that ends, the keyboard.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { answers, call, session, signedOut } from './answers.mjs'
import { answer, clean, shoot, visit } from './chromium.mjs'
import { freePort } from './host.mjs'
import { chromium, opened } from './opened.mjs'
import { startFake } from './fake.mjs'

describe('logging in and out', () => {
  let who = signedOut
  const login = {
    session: () => who,
    'POST login': (_, { token }) => {
      if (token !== 'right') return { status: 401, error: { code: 'unauthenticated', text: 'The token is not known.', remedy: 'Look at console.tokens.' } }
      return who = session()
    },
    'POST logout': () => {
      who = signedOut
      return {}
    },
  }
  opened('a wrong token, the right one, out again', { more: login }, async (page, host) => {
    await page.getByLabel('Token').fill('wrong')
    assert.match(await page.title(), /Sign in/)
    await page.keyboard.press('Enter')
    await page.getByText('The token is not known.').waitFor()
    await page.getByLabel('Token').fill('right')
    await page.keyboard.press('Enter')
    await page.locator('.stat').first().waitFor()
    await page.getByRole('button', { name: 'Sign out', exact: true }).click()
    await page.getByLabel('Token').waitFor()
    assert.deepEqual(host.posted.at(-1), { name: 'logout', body: { everywhere: false }, csrf: 'c5rf' })
  })
  opened('single sign-on is a link, and says why it failed', { hash: '#login=role', more: { session: signedOut } }, async (page, { url }) => {
    await page.getByText('none of your groups has a role').waitFor()
    assert.equal(await page.getByRole('link', { name: 'Continue with Example SSO' }).getAttribute('href'), 'api/oidc/login')
    assert.equal(new URL(page.url()).hash, '')
    await page.goto('about:blank')
    await page.goto(`${url}#login=<b>anything`)
    await page.getByText('Signing in failed.').waitFor()
  })
  let used
  const link = { session: signedOut, 'POST login': (_, body) => {
    used = body
    return session()
  } }
  opened('a one-time link is used and leaves the address bar', { hash: '#link=abc123', more: link }, async page => {
    await page.locator('.stat').first().waitFor()
    assert.deepEqual(used, { link: 'abc123' })
    assert.ok(!page.url().includes('abc123'))
  })
  let ended = false
  const ending = { session: () => ended ? signedOut : session(), overview: () => ended ? { status: 401, error: { code: 'unauthenticated', text: 'no' } } : answers().overview }
  opened('a session that ends leads to the login, and says so', { more: ending }, async page => {
    await page.locator('.stat').first().waitFor()
    ended = true
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange'))) // asks again at once
    await page.getByText('Your session has ended').waitFor()
  })
})

describe('what does not open the console', () => {
  const refused = { status: 401, error: { code: 'unauthenticated', text: 'no' } }
  opened('a wrong or old link says so, and where a new one comes from', { hash: '#link=wrong', more: { session: signedOut, 'POST login': () => refused } }, async page => {
    await page.getByText('This link does not sign in').waitFor()
    assert.match(await page.locator('.notice').innerText(), /older than 10 minutes.*hako console/)
    assert.equal(await page.getByText('cannot be reached').count(), 0)
  })
  const busy = { status: 429, error: { code: 'limited', text: 'Too many attempts: try again in 7 seconds.', retryAfter: 7 } }
  opened('another refusal is shown as the server words it', { hash: '#link=wrong', more: { session: signedOut, 'POST login': () => busy } }, async page => {
    await page.getByText('try again in 7 seconds').waitFor()
  })
  opened('a page that is older than the server says so', {}, async page => {
    await page.locator('.stat').first().waitFor()
    await page.route('**/views/tools.js', route => route.fulfill({ status: 404 }))
    await page.evaluate(() => { location.hash = '#/tools' })
    await page.getByText('it may be older than the hako that answers').waitFor()
    assert.equal(await page.getByText('cannot be reached').count(), 0)
  })
})

describe('roles', () => {
  opened('a viewer sees what others may do, and why not', { hash: '#/plugins/files', who: session('viewer') }, async (page, host) => {
    const approve = page.getByRole('button', { name: 'Approve' })
    await approve.waitFor()
    assert.equal(await approve.getAttribute('aria-disabled'), 'true')
    await page.getByText('This needs the role admin.').first().waitFor()
    await approve.click({ force: true })
    assert.equal(await page.locator('dialog').count(), 0)
    await page.goto(`${host.url}#/approvals`)
    await page.getByText('This needs the role approver.').first().waitFor()
    await page.goto(`${host.url}#/tools/get_weather`)
    await page.getByLabel('location').fill('x')
    await page.keyboard.press('Enter')
    assert.deepEqual(host.posted, [])
  })
  opened('a refusal by the server names the role', {
    hash: '#/configuration', more: { 'configuration/reload': { status: 403, error: { code: 'forbidden', text: 'no', role: 'admin' } } },
  }, async page => {
    await page.getByRole('button', { name: 'Reload' }).click()
    await page.getByText('This needs the role admin.').waitFor()
  })
})

describe('a login link in an open tab', () => {
  let who = signedOut
  const login = { session: () => who, 'POST login': (_, { link }) => link === 'new' ? who = session() : { status: 401, error: { code: 'unauthenticated', text: 'used' } } }
  opened('is used at once', { more: login }, async page => {
    await page.evaluate(() => { location.hash = '#link=old' })
    await page.locator('.notice').waitFor()
    await page.evaluate(() => { location.hash = '#link=new' })
    await page.getByRole('link', { name: /Approvals/ }).first().waitFor()
    assert.ok(!page.url().includes('link='), page.url())
  })
})

describe('approvals', () => {
  const given = []
  const open = answers().approvals.items
  const more = { approvals: () => ({ items: open.slice(given.length), more: given.length * 7 }),
    audit: url => url.searchParams.get('approver') === 'yui' ? { items: [] } : answers().audit(url), 'POST approvals/apr_1': (_, body) => {
    given.push(body)
    return { answer: body.answer }
  } }
  opened('a question is counted, announced, answered with a reason', { more }, async (page, host) => {
    await page.locator('.count:not([hidden])').waitFor()
    assert.match(await page.title(), /^\(3\) Overview/)
    host.send('approvals', { waiting: 4 })
    await page.locator('[aria-live]').filter({ hasText: '4 questions wait' }).waitFor()
    assert.match(await page.title(), /^\(4\)/)
    await page.getByRole('link', { name: /Approvals/ }).first().click()
    const first = page.locator('.question').first()
    assert.match(await first.locator('.clock').textContent(), /^\d:\d\d left$/)
    await first.getByText('Exact arguments').click()
    await first.getByText('"force": true').waitFor()
    await first.getByLabel(/Reason/).fill('release day')
    await answer(first, 'Allow this call')
    await page.locator('.question:not(.answered)').nth(2).waitFor({ state: 'detached' })
    assert.deepEqual(given, [{ answer: 'yes', reason: 'release day' }])
    await page.getByText('Only hr-admins may answer this.').waitFor()
    assert.deepEqual(await page.locator('.diff ins').allTextContents(), ['+ 09:30 朝会', '+ ␦new'])
    assert.deepEqual(await page.locator('.diff del').allTextContents(), ['- 09:00 Stand-up', '- <b>old</b>'])
    await page.getByText('7 more questions wait').waitFor()
    const last = page.locator('.question').last()
    await last.getByText('Always allow…').click()
    await last.getByLabel('Allow', { exact: true }).selectOption('this tool, for this caller')
    await last.getByText('always allow file_write for ken@example.com at mcp-http"').waitFor()
    await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }))
    await last.getByRole('button', { name: 'Copy' }).click()
    await last.getByText('The browser does not allow it').waitFor()
    await last.getByRole('button', { name: 'Save as a proposal' }).click()
    await last.getByText('hako.policy.proposed.yaml, which is not in force').waitFor()
    assert.deepEqual(host.posted.at(-1), { name: 'approvals/apr_3/rules', body: { scope: 'caller' }, csrf: 'c5rf' })
    const history = page.getByRole('region', { name: 'History' })
    await history.getByRole('row').filter({ hasText: 'yui' }).first().waitFor()
    await history.getByLabel('Answered by').fill('yui')
    await history.getByRole('button', { name: 'Search' }).click()
    await history.getByText('No question found').waitFor()
  })
  const record = seq => ({ ...answers().audit(new URL('http://hako/?asked=yes')).items[0], seq, name: `tool_${seq}`, time: new Date(60_000 * (seq === 7 ? 1 : seq)).toISOString() })
  let newest = [8, 7, 6]
  opened('the history is in the order of the questions, grows while it is read, and keeps older pages', {
    hash: '#/approvals', more: { audit: url => url.searchParams.has('cursor') ? { items: [5, 4].map(record) } : { items: newest.map(record), next: 'older' } },
  }, async (page, host) => {
    const rows = page.getByRole('region', { name: 'History' }).locator('tbody tr')
    const tools = async () => (await rows.locator('code').allTextContents()).join(' ')
    await rows.nth(2).waitFor()
    assert.equal(await tools(), 'tool_8 tool_6 tool_7') // 7 waited longest for its answer
    await page.getByRole('button', { name: 'Older records' }).click()
    await rows.nth(4).waitFor()
    newest = [9, 8, 7]
    await host.connected()
    host.send('call', { ...call(9), decision: 'ask' })
    await rows.nth(5).waitFor()
    assert.equal(await tools(), 'tool_9 tool_8 tool_6 tool_5 tool_4 tool_7')
    newest = [30, 29, 28] // too many since: the page would hide those between
    host.send('call', { ...call(30), decision: 'ask' })
    await rows.filter({ hasText: 'tool_9' }).waitFor({ state: 'detached' })
    assert.equal(await tools(), 'tool_30 tool_29 tool_28')
  })
  const waiting = () => ['apr_7', 'apr_8', 'apr_9'].map(id => ({ ...open[0], id }))
  let left = waiting()
  const approved = []
  const queue = Object.fromEntries(waiting().map(({ id }) => [`POST approvals/${id}`, (_, body) => {
    approved.push(id)
    left = left.filter(question => question.id !== id)
    return { answer: body.answer }
  }]))
  opened('quick clicks at one spot answer one question', {
    hash: '#/approvals', more: { ...queue, approvals: () => ({ items: left }) },
  }, async page => {
    await page.clock.install()
    await page.reload()
    const cards = page.locator('.question')
    await cards.nth(2).waitFor()
    await page.clock.pauseAt(Date.now() + 5000)
    const place = async card => {
      const { x, y, width, height } = await card.getByRole('button', { name: 'Allow this call' }).boundingBox()
      return [x + width / 2, y + height / 2]
    }
    const press = async at => {
      await page.mouse.move(at[0] - 3, at[1])
      await page.mouse.click(...at)
    }
    const spot = await place(cards.nth(0))
    for (let i = 0; i < 3; i++) await press(spot)
    await page.locator('.question.answered').getByText('approved').waitFor()
    await page.clock.runFor(30_000) // the list is read again meanwhile
    for (let i = 0; i < 3; i++) await press(spot)
    assert.deepEqual(approved, ['apr_7'])

    const before = await place(cards.nth(1))
    await page.mouse.move(1, 1)
    await page.clock.runFor(2100)
    const after = await place(cards.nth(1))
    assert.ok(after[1] < before[1] - 20, `the answered card did not fold: ${before} ${after}`)
    await press(after)
    assert.deepEqual(approved, ['apr_7'])
    await page.clock.runFor(1000)
    await press(after)
    await page.locator('.question.answered').nth(1).waitFor()
    assert.deepEqual(approved, ['apr_7', 'apr_8'])
  })
  let yes
  const pressed = { 'POST approvals/apr_1': (_, { answer }) => {
    yes = answer
    return { answer }
  } }
  opened('a press right after the page was scrolled counts', { hash: '#/approvals', size: 'phone', more: pressed }, async page => {
    const card = page.locator('.question').first()
    const button = card.getByRole('button', { name: 'Allow this call' })
    await button.waitFor()
    await page.setViewportSize({ width: 360, height: 300 })
    await button.and(page.locator(':enabled')).waitFor()
    const moved = await button.evaluate(button => {
      const card = button.closest('.question').getBoundingClientRect()
      const place = () => button.getBoundingClientRect().top + scrollY
      scrollBy(0, card.top + card.height / 2 - innerHeight) // half of the card is below the window
      const before = place()
      scrollBy(0, 40)
      button.dispatchEvent(new PointerEvent('pointerdown', { bubbles: true }))
      button.click()
      return place() - before
    })
    assert.ok(moved > 0, 'the buttons were not held in view')
    await page.locator('.question.answered').waitFor()
    assert.equal(yes, 'yes')
  })
  opened('an answer that comes too late is said to be', {
    hash: '#/approvals', more: { 'POST approvals/apr_1': { status: 409, error: { code: 'conflict', text: 'It was answered already.' } } },
  }, async page => {
    await page.getByRole('button', { name: 'Refuse' }).first().click()
    await page.getByText('It was answered already.').waitFor()
  })
})

describe('trying a tool that needs a yes', () => {
  let items = []
  let go
  const answered = new Promise(resolve => { go = resolve })
  const more = {
    approvals: () => ({ items }),
    'POST tools/get_weather/call': async () => {
      const waiting = answers().approvals.items[0]
      items = [{ ...waiting, id: 'apr_t', tool: 'get_weather', caller: { user: session().user.name, frontend: 'console' } }, { ...waiting, id: 'apr_o', tool: 'get_weather' }]
      await answered
      return { outcome: 'ok', durationMs: 5, content: [{ type: 'text', text: 'sunny' }] }
    },
    'POST approvals/apr_t': (_, body) => {
      items = []
      go()
      return { answer: body.answer }
    },
  }
  opened('shows the question in the form', { hash: '#/tools/get_weather', more }, async page => {
    await page.getByLabel('location').fill('x')
    await page.keyboard.press('Enter')
    const question = page.locator('.result .question')
    await answer(question, 'Allow this call')
    await page.getByText('sunny').waitFor()
    assert.equal(await page.locator('.question').count(), 0)
  })
})

describe('plugins', () => {
  const newer = { ...answers()['plugins/files'].ask, version: 'sha256:newer', additions: ['exec: also asks to run git'] }
  let times = 0
  const more = { 'plugins/files/approve': () => times++ === 0 ? { status: 409, error: { code: 'conflict', text: 'changed' }, ask: newer } : answers()['plugins/files'] }
  opened('approving shows what is new, and shows it anew where it has changed', { hash: '#/plugins/files', more }, async (page, host) => {
    await page.getByRole('button', { name: 'Approve' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('templates: also asks to send GET, HEAD').waitFor()
    await dialog.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('dialog').getByText('The plugin has changed').waitFor()
    await page.getByRole('dialog').getByText('exec: also asks to run git').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click()
    await dialog.waitFor({ state: 'detached' })
    assert.deepEqual(host.posted.map(post => post.body.version), [answers()['plugins/files'].ask.version, 'sha256:newer'])
  })
  opened('limits have units', { hash: '#/plugins/files' }, async page => {
    const limits = page.locator('.card').filter({ hasText: 'Limits of a call' })
    await limits.getByText('10,000 million steps').waitFor()
    await limits.getByText('6,000 a minute').waitFor()
    await limits.getByText('30s').waitFor()
  })
  const unreadable = answers().plugins.items.find(plugin => plugin.file === 'notes.wasm')
  opened('a file that cannot be read says why', { hash: '#/plugins', more: { 'plugins/notes.wasm': { ...unreadable, path: '/plugins/notes.wasm', asks: [], gets: [], tools: [], limits: {}, config: [] } } }, async page => {
    await page.locator('.opener', { hasText: 'notes.wasm' }).click()
    await page.locator('h1', { hasText: 'notes.wasm' }).waitFor()
    await page.locator('.notice', { hasText: 'notes.wasm is not a WebAssembly module' }).waitFor()
  })
  const listing = { index: 'https://tools.example.com/index.yaml', name: 'calendar' }
  opened('one is found in an index and added with two clicks', { hash: '#/find', more: { 'POST index/add': { name: 'calendar' }, 'plugins/calendar': { ...answers()['plugins/files'], name: 'calendar' } } }, async (page, host) => {
    await page.locator('.find tbody tr').nth(2).getByText('looks like that of calendar').waitFor()
    await page.getByText('This is the copy from').waitFor()
    const searched = page.waitForRequest(request => new URL(request.url()).searchParams.get('q') === '予定')
    await page.getByRole('searchbox').fill('予定')
    await searched
    await page.locator('.find .opener').first().focus()
    await page.keyboard.press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Add calendar 2.1.0?' })
    await dialog.getByText('may send GET to https://calendar.example.com/').waitFor()
    assert.equal(await dialog.getByRole('link').getAttribute('href'), 'https://tools.example.com/calendar')
    await dialog.getByRole('button', { name: 'Add', exact: true }).click()
    await page.locator('.head').getByRole('button', { name: 'Approve' }).waitFor()
    assert.deepEqual(host.posted.map(({ name, body }) => [name, body]), [['index/read', listing],
      ['index/add', { ...listing, digest: answers()['POST index/read'].digest, replace: false }]])
  })
  opened('one in an index that cannot be read says why', { hash: '#/find', more: { 'POST index/read': { status: 400, error: { code: 'invalid', text: 'it has the digest sha256:11' } } } }, async page => {
    await page.locator('.find .opener').first().click()
    await page.getByRole('dialog').locator('.problem', { hasText: 'it has the digest sha256:11' }).waitFor()
  })
  const version = { name: 'files', version: '0.3.0', description: 'Files.', license: 'Apache-2.0', digest: 'sha256:33', size: 1000, asks: [], tools: [], exists: true,
    before: '0.2.0', from: 'oci://registry.example.com/tools/files:0.3.0', signer: {}, changes: ['! Another signer: unsigned; before: signed by release@example.com (https://issuer.example.com)', '+ tool <b>delete</b>'] }
  const installed = { ...answers()['plugins/files'], installed: { from: 'oci://registry.example.com/tools/files:0.2.0', previous: '0.1.0' } }
  for (const [button, read, step] of [['Look for a newer version …', 'newer', 'update'], ['Go back …', 'previous', 'rollback']]) {
    opened(`another version is shown with its differences: ${step}`, { hash: '#/plugins/files',
      more: { 'plugins/files': installed, [`POST plugins/files/${read}`]: read === 'newer' ? { newer: version } : version, [`POST plugins/files/${step}`]: {} } }, async (page, host) => {
      await page.getByRole('button', { name: button }).click()
      await page.getByRole('dialog').getByText('+ tool <b>delete</b>').waitFor()
      await page.getByRole('dialog').getByText('! Another signer: unsigned').waitFor()
      await page.getByRole('dialog').getByRole('button', { name: 'Replace' }).click()
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      assert.deepEqual(host.posted.map(({ name, body }) => [name, body]), [[`plugins/files/${read}`, {}], [`plugins/files/${step}`, { digest: 'sha256:33' }]])
    })
  }
  opened('nothing newer is said', { hash: '#/plugins/files', more: { 'plugins/files': installed, 'POST plugins/files/newer': {} } }, async page => {
    await page.getByRole('button', { name: 'Look for a newer version …' }).click()
    await page.getByRole('dialog').getByText('There is nothing newer').waitFor()
  })
  opened('removing asks first, and says what is left', { hash: '#/plugins/files', more: { 'plugins/files': installed, 'POST plugins/files/remove': { left: ['its databases: /srv/<i>x</i>'] } } }, async (page, host) => {
    await page.getByRole('button', { name: 'Remove …' }).click()
    assert.deepEqual(host.posted, [])
    await page.getByRole('dialog').getByRole('button', { name: 'Remove …' }).click()
    await page.getByRole('dialog', { name: 'files is removed' }).getByText('its databases: /srv/<i>x</i>').waitFor()
    assert.deepEqual(host.posted.map(({ name, body }) => [name, body]), [['plugins/files/remove', { digest: installed.digest }]])
  })
  opened('MCP servers are searched on request, and shown with their lines', { hash: '#/find', more: { 'index/servers': { registry: 'https://registry.example.com', items: [
    { name: 'com.example/weather', version: '1.0.0', description: '<b>Weather</b>', setups: [{ kind: 'npm', config: { mcpServers: { weather: { command: 'npx', args: ['@example/weather@1.0.0'] } } }, notes: ['set WEATHER_KEY (secret)'] }, { kind: 'mcpb', reason: 'a bundle' }] }] } } }, async page => {
    await page.getByRole('button', { name: 'Search MCP servers' }).click()
    await page.locator('.opener', { hasText: 'com.example/weather' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.locator('pre', { hasText: '"@example/weather@1.0.0"' }).waitFor()
    await dialog.getByText('set WEATHER_KEY (secret)').waitFor()
    await dialog.getByText('Not for hako: a bundle').waitFor()
    await dialog.getByText('<b>Weather</b>').waitFor()
  })
  opened('revoking asks first', { hash: '#/plugins/files', more: { 'plugins/files/revoke': {} } }, async (page, host) => {
    await page.getByRole('button', { name: 'Revoke' }).click()
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Cancel')
    await page.keyboard.press('Escape')
    assert.deepEqual(host.posted, [])
    await page.getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    assert.equal(host.posted[0].name, 'plugins/files/revoke')
  })
  opened('ending a login asks first', { hash: '#/tokens', more: { 'logins/NODGF2RRXC6SF4LAZKOYX7DC2A/end': {} } }, async (page, host) => {
    await page.locator('tr').filter({ hasText: 'Visual Studio Code' }).getByRole('button', { name: 'End' }).click()
    await page.getByRole('dialog').getByText('ken@example.com (acme)').waitFor()
    assert.deepEqual(host.posted, [])
    await page.getByRole('dialog').getByRole('button', { name: 'End', exact: true }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    assert.equal(host.posted[0].name, 'logins/NODGF2RRXC6SF4LAZKOYX7DC2A/end')
  })
  opened('a user is blocked at one issuer, and unblocked', { hash: '#/tokens', more: { 'POST blocks': {}, 'blocks/remove': {} } }, async (page, host) => {
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Block a user' }).click()
    await dialog.getByLabel('User').fill('mori@example.com')
    await dialog.getByLabel('Issuer').selectOption('https://login.example.com')
    await dialog.getByRole('button', { name: 'Block a user' }).click()
    await dialog.waitFor({ state: 'detached' })
    await page.locator('tr').filter({ hasText: 'yamada@example.com' }).getByRole('button', { name: 'Unblock' }).click()
    await dialog.getByRole('button', { name: 'Unblock' }).click()
    await dialog.waitFor({ state: 'detached' })
    assert.deepEqual(host.posted.map(({ name, body }) => [name, body]), [
      ['blocks', { user: 'mori@example.com', issuer: 'https://login.example.com' }],
      ['blocks/remove', { user: 'yamada@example.com', issuer: 'https://login.example.com' }],
    ])
  })
})

describe('trying a tool', () => {
  opened('the form says what is wrong, and sends what was meant', { hash: '#/tools/get_weather' }, async (page, host) => {
    const submit = page.getByRole('button', { name: 'Call', exact: true })
    await page.getByLabel('location').waitFor()
    await submit.click()
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-invalid')), 'true')
    await page.getByLabel('location').fill('東京')
    await page.getByLabel('days').fill('2.5')
    await submit.click()
    await page.getByText('Write a whole number.').waitFor()
    await page.getByLabel('days').fill('2')
    await page.getByLabel('notify').check()
    await page.getByLabel('unit').selectOption('fahrenheit')
    await page.getByRole('button', { name: 'Add' }).click()
    await page.keyboard.type('a')
    await page.getByRole('button', { name: 'Add' }).click()
    await page.keyboard.type('b')
    await page.getByRole('button', { name: 'Remove' }).first().click()
    await page.getByLabel('code').fill('130000')
    await page.getByLabel('when').fill('{"from":')
    await submit.click()
    await page.getByText('This is not JSON').waitFor()
    await page.getByLabel('when').fill('{"from": "mon"}')
    await submit.click()
    await page.locator('.picture').waitFor()
    assert.deepEqual(host.posted.at(-1).body.arguments, {
      location: '東京', days: 2, notify: true, unit: 'fahrenheit', tags: ['b'], area: { code: '130000' }, when: { from: 'mon' },
    })
    await page.waitForFunction(() => document.querySelector('.picture').naturalWidth === 16)
    await page.locator('.result code', { hasText: 'file:///tokyo.txt' }).waitFor()
    await page.locator('.result pre', { hasText: /^晴れ$/ }).waitFor()
  })
  opened('the form and JSON are two ways to write the same', { hash: '#/tools/get_weather' }, async (page, host) => {
    await page.getByLabel('location').fill('大阪')
    await page.getByRole('button', { name: 'Edit as JSON' }).click()
    const text = page.getByLabel('Arguments')
    assert.deepEqual(JSON.parse(await text.inputValue()), { location: '大阪', days: 3, notify: false, unit: 'celsius' })
    await text.fill('{"location": "京都", "days": 5, "notify": true, "tags": ["x", "y"], "area": {"code": "26"}}')
    await page.getByRole('button', { name: 'Edit as a form' }).click()
    assert.equal(await page.getByLabel('location').inputValue(), '京都')
    await page.getByRole('button', { name: 'Call', exact: true }).click()
    await page.locator('.result pre').first().waitFor()
    assert.deepEqual(host.posted.at(-1).body.arguments, { location: '京都', days: 5, notify: true, unit: 'celsius', tags: ['x', 'y'], area: { code: '26' } })
  })
  const odd = { type: 'object', required: ['kind', 'note'], properties: {
    kind: { const: 'odd' }, note: { type: ['string', 'null'] }, place: { type: 'object', required: ['code'], properties: { code: { type: 'string', minLength: 1 }, unit: { enum: ['km', 'mi'], default: 'km' } } },
    either: { type: 'object', properties: {}, oneOf: [{ required: ['a'] }, { required: ['b'] }] },
  } }
  opened('an object that is left alone is left out, whatever its defaults; one that is begun is asked for whole', {
    hash: '#/tools/get_weather', more: { 'tools/get_weather': { ...answers()['tools/get_weather'], inputSchema: odd } },
  }, async (page, host) => {
    const submit = page.getByRole('button', { name: 'Call', exact: true })
    await page.getByLabel('note').fill('n')
    await submit.click()
    await page.locator('.result pre').first().waitFor()
    assert.deepEqual(host.posted.at(-1).body.arguments, { kind: 'odd', note: 'n' })
    await page.getByLabel('unit').selectOption('mi')
    await submit.click()
    await page.getByText('This is required.').waitFor()
    await page.getByLabel('code').fill('13')
    await page.getByLabel('either').fill('{"a": 1}')
    await submit.click()
    await page.getByText('"either"').first().waitFor()
    assert.deepEqual(host.posted.at(-1).body.arguments, { kind: 'odd', note: 'n', place: { code: '13', unit: 'mi' }, either: { a: 1 } })
  })
  opened('a call can be canceled', { hash: '#/tools/get_weather', more: { 'POST tools/get_weather/call': () => new Promise(() => {}) } }, async page => {
    await page.getByLabel('location').fill('東京')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Cancel the call' }).click()
    await page.getByText('The call was canceled.').waitFor()
  })
})

describe('live calls', () => {
  const none = { 'calls/running': { items: [] } }
  opened('they appear, can be held, filtered and looked at', { hash: '#/calls', more: { ...none, 'calls/1': answers()['calls/call_DONE'] } }, async (page, host) => {
    await page.getByText('Calls appear here when they start.').waitFor()
    const rows = page.locator('tbody tr')
    await host.connected()
    host.send('call', call(1))
    await rows.nth(0).waitFor()
    await page.getByRole('button', { name: 'Pause' }).click()
    host.send('call', call(2, { tool: 'shell_exec', plugin: 'shell', outcome: 'not_allowed', failed: true }))
    host.send('dropped', { count: 120 })
    await page.getByText('Paused. 1 call since. 120 calls were left out').waitFor()
    assert.equal(await rows.count(), 1)
    await page.getByRole('button', { name: 'Resume' }).click()
    assert.equal(await rows.count(), 2)
    await page.getByLabel('Outcome').selectOption('denied')
    assert.equal(await rows.count(), 1)
    await page.getByLabel('Outcome').selectOption('')
    await page.getByRole('searchbox').fill('weather')
    assert.equal(await rows.count(), 1)
    await rows.first().click()
    await page.getByText('api.freee.co.jp').first().waitFor()
    assert.match(page.url(), /#\/calls\/1$/)
  })
  const left = [answers()['calls/running'].items[0]]
  const stopping = { 'calls/running': () => ({ items: left }), 'POST calls/call_RUN1/stop': () => {
    left.length = 0
    return {}
  } }
  opened('a call that runs appears with its progress, and Stop ends it', { hash: '#/calls', more: stopping }, async (page, host) => {
    const [first] = left.splice(0)
    await page.getByText('Calls appear here when they start.').waitFor()
    await host.connected()
    left.push(first)
    host.send('started', {})
    const row = page.locator('tbody tr').filter({ hasText: 'list_employees' })
    await row.getByText('page 4 of 10').waitFor()
    assert.match(await row.textContent(), /month: "2026-10"/)
    const button = row.getByRole('button', { name: 'Stop list_employees?' })
    // The row is drawn again each second while somebody presses the button.
    await button.hover()
    await page.mouse.down()
    left[0] = { ...first, elapsedMs: 90_000, progress: { share: 0.9, message: 'page 9 of 10' } }
    await row.getByText('page 9 of 10').waitFor()
    await page.mouse.up()
    const dialog = page.getByRole('dialog', { name: 'Stop list_employees?' })
    await dialog.getByText('aki@example.com (acme)').waitFor()
    await dialog.getByRole('button', { name: 'Stop' }).click()
    await row.waitFor({ state: 'detached' })
    assert.deepEqual(host.posted, [{ name: 'calls/call_RUN1/stop', body: {}, csrf: 'c5rf' }])
    host.send('call', { ...call('call_RUN1'), tool: 'list_employees', outcome: 'stopped', arguments: { month: '2026-10' } })
    await row.getByText('stopped').waitFor()
  })
  opened('a call that waits leads to its question', { hash: '#/calls' }, async page => {
    await page.getByText('This is the replica web-1').waitFor()
    await page.getByRole('link', { name: 'waits for a person' }).click()
    await page.locator('.question').first().waitFor()
    assert.match(page.url(), /#\/approvals\/apr_1$/)
  })
  opened('a viewer cannot stop a call', { hash: '#/calls', who: session('viewer') }, async (page, host) => {
    await page.getByText('page 4 of 10').waitFor()
    assert.equal(await page.getByRole('button', { name: /Stop/ }).count(), 0)
    await page.goto(`${host.url}#/calls/call_RUN1`)
    await page.getByText('This needs the role admin.').waitFor()
  })
  opened('a pasted address shows the steps of a call, and what is not kept', {
    hash: '#/calls/call_DONE', more: { 'calls/call_OLD': { ...answers()['calls/call_DONE'], id: 'call_OLD', kept: false, steps: [], log: [] } },
  }, async (page, host) => {
    await page.getByText('panic: runtime error').waitFor()
    await page.getByText('plugin hr stopped').waitFor()
    const bars = await page.locator('.steps rect').evaluateAll(list => list.map(rect => [Number(rect.getAttribute('x')), Number(rect.getAttribute('width'))]))
    assert.equal(bars.length, 8)
    assert.ok(Math.abs(bars[1][1] - 575) < 2 && Math.abs(bars[7][0] - 746) < 2, JSON.stringify(bars))
    await page.goto(`${host.url}#/calls/call_OLD`)
    await page.getByText('are not kept here').waitFor()
    await page.goto(`${host.url}#/calls/call_NONE`)
    await page.getByText('no calls/call_NONE').waitFor()
  })
  opened('errors are told apart: what crashed, and what the tool answered', { hash: '#/errors' }, async page => {
    const rows = page.locator('tbody tr')
    await rows.nth(4).waitFor()
    assert.match(await rows.nth(0).textContent(), /plugin crashed or misbehaved.*wasm error: unreachable/)
    assert.match(await rows.nth(1).textContent(), /the tool said no.*41/)
    await page.getByLabel('Where to look').selectOption('plugin')
    assert.equal(await rows.count(), 1)
    await rows.first().getByRole('link', { name: 'Last such call' }).click()
    await page.locator('.steps').waitFor()
  })
  opened('a flood of calls keeps the page light', { hash: '#/calls', more: none }, async (page, host) => {
    await host.connected()
    for (let id = 1; id <= 3000; id++) host.send('call', call(id))
    await page.locator('tbody tr').nth(199).waitFor()
    assert.equal(await page.locator('tbody tr').count(), 200)
  })
})

describe('the audit log', () => {
  const asked = []
  const more = { audit: url => {
    asked.push(Object.fromEntries(url.searchParams))
    return answers().audit(url)
  }, 'audit/verification': { state: 'done', finished: new Date().toISOString(), ok: false, records: 9, signed: 8, problems: ['audit-00000001.jsonl:3: the record was changed'] } }
  opened('a search has its own address, goes back, and shows that the log was changed', { hash: '#/audit?tool=file_write', more }, async page => {
    await page.getByText('The log has been changed.').waitFor()
    await page.getByText('audit-00000001.jsonl:3').waitFor()
    await page.locator('tbody tr').first().waitFor()
    assert.deepEqual(asked[0], { tool: 'file_write', lang: 'en' })
    await page.getByLabel('Outcome').selectOption('not_allowed')
    await page.getByLabel('Text').fill('git push')
    await page.getByLabel('From').fill('2026-11-20T09:00')
    await Promise.all([page.waitForResponse(/text=git/), page.getByRole('button', { name: 'Search' }).click()])
    await Promise.all([page.waitForResponse(/cursor=older/), page.getByRole('button', { name: 'Older records' }).click()])
    await page.locator('tbody tr').first().waitFor()
    const { from, ...last } = asked.at(-1)
    assert.deepEqual(last, { tool: 'file_write', outcome: 'not_allowed', text: 'git push', cursor: 'older', lang: 'en' })
    assert.ok(!Number.isNaN(Date.parse(from)) && from.endsWith('Z'), from)
    assert.match(page.url(), /outcome=not_allowed/)
  })
})

describe('the configuration', () => {
  opened('a reload says what is in force and what waits for a restart', { hash: '#/configuration' }, async page => {
    await page.getByRole('button', { name: 'Reload' }).click()
    await page.getByText('In force now:').waitFor()
    await page.getByText('In force after a restart of hako:').waitFor()
    const [set, unset] = [page.locator('.view > .scroll tbody tr'), page.locator('details.rest tbody tr')]
    assert.equal(await set.count(), 3)
    assert.equal(await unset.first().isVisible(), false)
    assert.match(await set.filter({ hasText: 'http.address' }).textContent(), /environment HAKO_HTTP_ADDRESS/)
    assert.match(await set.filter({ hasText: 'limits.time' }).textContent(), /20s.*default: 30s.*hako\.yaml:22/)
    await page.getByLabel('Filter keys').fill('log.')
    await unset.filter({ hasText: 'log.level' }).waitFor()
    assert.equal(await unset.count(), 1)
    await page.getByLabel('Filter keys').fill('YAML:22')
    await set.filter({ hasText: 'limits.time' }).waitFor()
    assert.equal(await set.count(), 1)
  })
})

describe('the time that is shown', () => {
  const asked = []
  const more = { 'series/top': url => {
    asked.push(url.searchParams.get('span'))
    return answers()['series/top']
  } }
  opened('a longer one is asked for at once, is of all replicas, and stays for other views', { more }, async (page, host) => {
    await page.getByText('The calls of this replica alone, web-1 0123456789ab.').waitFor()
    await page.getByLabel('Time that is shown').selectOption('week')
    await page.getByText('The calls of this replica alone').waitFor({ state: 'detached' })
    assert.deepEqual(asked.slice(-1), ['week'])
    await page.getByRole('heading', { name: 'Calls in an hour' }).waitFor()
    await shoot(page, 'console-week')
    await page.locator('.numbers summary').first().click()
    await page.locator('.numbers').first().locator('tbody tr').nth(167).waitFor()
    await page.locator('.plot').first().focus()
    await page.keyboard.press('ArrowLeft')
    assert.match(await page.locator('.readout').first().textContent(), /^\d\d\/\d\d \d\d:\d\d {2}answered/)
    await page.evaluate(() => { location.hash = '#/tools' })
    await page.locator('.tools tbody tr').first().waitFor()
    assert.equal(await page.getByLabel('Time that is shown').inputValue(), 'week')
    assert.equal(asked.at(-1), 'week')
    await page.goto(`${host.url}#/tools/get_weather`)
    await page.locator('.legend li').first().waitFor()
  })
})

describe('few calls', () => {
  const seldom = Array.from({ length: 360 }, (_, i) => i % 150 === 40 ? [2, i === 40 ? 1 : 0, 3, 20, 80] : [0, 0, null, null, null])
  const series = points => () => ({ step: 10, from: new Date(Date.now() - 3600e3).toISOString(), points })
  opened('are points, and none take no charts', { more: { series: series(seldom) } }, async (page, host) => {
    await page.locator('.plot .dot').first().waitFor()
    assert.equal(await page.locator('.plot').first().locator('.area').count(), 0)
    assert.equal(await page.locator('.plot').first().locator('.tone-failures .dot').count(), 1)
    Object.assign(host.answers, { series: series(seldom.map(() => [0, 0, null, null, null])), 'series/top': { items: [] }, replicas: { items: [] } })
    await page.reload()
    await page.getByText('No calls in this time.').waitFor()
    assert.equal(await page.locator('.plot').first().isVisible(), false)
    assert.equal(await page.getByRole('heading', { name: 'Replicas' }).count(), 0)
    await visit(page, 'tools/get_weather')
    await page.getByText('No calls in this time.').waitFor()
    assert.equal(await page.locator('.plot').first().isVisible(), false)
    Object.assign(host.answers, { series: answers().series })
    await page.reload()
    await page.locator('.legend li').first().waitFor()
    assert.equal(await page.locator('.plot').first().isVisible(), true)
  })
})

describe('language and theme', () => {
  opened('both can be changed, and stay', {}, async (page, host) => {
    await page.getByLabel('Language').selectOption('ja')
    await page.getByRole('heading', { name: '概要' }).waitFor()
    await page.getByLabel('表示テーマ').selectOption('dark')
    await page.goto(`${host.url}#/tools`)
    await page.reload()
    await page.getByRole('heading', { name: 'ツール' }).waitFor()
    assert.equal(await page.evaluate(() => document.documentElement.lang), 'ja')
    assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor), 'rgb(16, 18, 22)')
  })
})

describe('a server that goes away', () => {
  test('the page says so, tries again, and goes on', async t => {
    const port = await freePort()
    const host = await startFake(answers(), port)
    const page = await chromium.open(host.url)
    await page.locator('.stat').first().waitFor()
    await host.stop()
    await page.getByText('hako cannot be reached.').waitFor()
    const again = await startFake(answers(), port)
    t.after(() => again.stop())
    await page.getByText('hako cannot be reached.').waitFor({ state: 'detached' })
    await page.evaluate(() => { location.hash = '#/calls' })
    await page.locator('.calls').waitFor()
    await again.connected()
    again.send('call', call(1))
    await page.locator('tbody tr').first().waitFor()
    await clean(page)
  })
})

describe('a server that hangs', () => {
  opened('the page tells it from one that is away and from one slow answer, and goes on', { hash: '#/connections' }, async (page, host) => {
    await page.locator('.connections tbody tr').first().waitFor()
    await page.clock.install()
    const { session: answered, upstreams } = host.answers
    const never = () => new Promise(() => {})
    const hangs = page.getByText('hako can be reached, but does not answer.')
    const again = () => page.evaluate(() => { location.hash = location.hash === '#/connections' ? '#/tools' : '#/connections' })

    host.answers.upstreams = never
    await again()
    await Promise.all([page.waitForRequest(/api\/upstreams/), again()])
    await Promise.all([page.waitForResponse(/api\/session$/), page.clock.runFor(8_000)])
    assert.equal(await hangs.count(), 0)

    host.answers.session = host.answers.tools = never
    await Promise.all([page.waitForRequest(/api\/tools/), again()])
    await Promise.all([page.waitForRequest(/api\/session$/), page.clock.runFor(8_000)])
    await page.clock.runFor(5_000)
    await hangs.waitFor()
    await shoot(page, 'console-hanging')
    await Promise.all([page.waitForRequest(/api\/tools/), page.getByRole('button', { name: 'Try again' }).click()])

    Object.assign(host.answers, { session: answered, upstreams, tools: answers().tools })
    await page.clock.runFor(20_000)
    await hangs.waitFor({ state: 'detached' })
    await page.locator('.tools tbody tr').first().waitFor()
  })
})

describe('a view that is opened while a server hangs', () => {
  const views = { 'tools/get_weather': ['tools/get_weather', 'form'], 'toolsets?draft=support': ['toolsets/support', '.result pre'], 'policy/try': ['policy/text', '.editor'],
    'policy/table': ['policy/table', '.matrix'], audit: ['audit', 'tbody tr'], calls: ['calls/finished', 'tbody tr'] }
  for (const [view, [asked, shown]] of Object.entries(views)) {
    opened(`is shown when it answers again: ${view}`, { hash: '#/connections' }, async (page, host) => {
      await page.locator('.connections tbody tr').first().waitFor()
      await page.clock.install()
      const before = { session: host.answers.session, [asked]: host.answers[asked] }
      host.answers.session = host.answers[asked] = () => new Promise(() => {})
      await Promise.all([page.waitForRequest(request => request.url().includes(`/api/${asked}`)), page.evaluate(hash => { location.hash = hash }, `#/${view}`)])
      await Promise.all([page.waitForRequest(/api\/session$/), page.clock.runFor(8_000)])
      await page.clock.runFor(5_000)
      await page.getByText('hako can be reached, but does not answer.').waitFor()
      Object.assign(host.answers, before)
      await page.clock.runFor(20_000)
      await page.clock.resume()
      await page.locator(`.view ${shown}`).first().waitFor()
      if (view === 'policy/try') await page.waitForFunction(() => document.querySelector('.editor').value.startsWith('version: 1'))
      assert.equal(await page.getByText('hako cannot be reached').count(), 0)
    })
  }
})

describe('times', () => {
  const records = ['2019-03-05T01:02:03Z', new Date().toISOString()].map((time, i) => ({ seq: i + 1, time, type: 'tools/call', who: {}, name: 'a', outcome: 'ok' }))
  opened('those of another day have their date, and all their zone', { hash: '#/audit', timezoneId: 'Asia/Tokyo', more: { audit: { items: records } } }, async page => {
    const times = page.locator('.audit time')
    await times.nth(1).waitFor()
    assert.equal(await times.first().textContent(), '03/05/2019, 10:02:03')
    assert.equal(await times.first().getAttribute('title'), '2019-03-05T10:02:03.000+09:00 (Asia/Tokyo)')
    assert.match(await times.nth(1).textContent(), /^\d\d:\d\d:\d\d$/)
  })
})

describe('the keyboard alone', () => {
  opened('reaches the content, a view, a row, its dialog, and gets back', {}, async page => {
    await page.locator('.stat').first().waitFor()
    await page.keyboard.press('Tab')
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to content')
    await page.keyboard.press('Enter')
    assert.equal(await page.evaluate(() => document.activeElement.id), 'main')
    await page.locator('nav a', { hasText: 'Audit log' }).focus()
    await page.keyboard.press('Enter')
    await page.locator('.audit tbody tr').first().waitFor()
    assert.equal(await page.evaluate(() => document.activeElement.tagName), 'H1')
    let steps = 0
    while (!await page.evaluate(() => document.activeElement.matches('.opener')) && steps++ < 40) await page.keyboard.press('Tab')
    assert.ok(steps < 40, 'Tab does not reach the table')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Record 12343' }).waitFor()
    await page.keyboard.press('Escape')
    assert.equal(await page.evaluate(() => [...document.querySelectorAll('.opener')].indexOf(document.activeElement)), 2)
    await page.keyboard.press('Home')
    assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll('.opener')].map(row => row.tabIndex).slice(0, 3)), [0, -1, -1])
    assert.ok(await page.evaluate(() => document.querySelector('.opener') === document.activeElement))
  })
  opened('opens and closes the menu of a phone', { size: 'phone' }, async page => {
    const menu = page.getByRole('button', { name: 'Menu' })
    await menu.waitFor()
    assert.equal(await page.locator('nav').isVisible(), false)
    await menu.focus()
    await page.keyboard.press('Enter')
    await page.getByRole('link', { name: 'Tools', exact: true }).waitFor()
    await page.keyboard.press('Escape')
    assert.equal(await menu.getAttribute('aria-expanded'), 'false')
    assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Menu')
  })
  opened('reads a chart', {}, async page => {
    const plot = page.locator('.plot').first()
    await page.locator('.legend li').first().waitFor()
    await plot.focus()
    await page.keyboard.press('ArrowLeft')
    await page.keyboard.press('ArrowLeft')
    assert.match(await page.locator('.readout').first().textContent(), /^\d\d:\d\d:\d\d {2}answered [\d.]+ {2}failed [\d.]+$/)
    await page.locator('.numbers summary').first().click()
    await page.locator('.numbers tbody tr').nth(359).waitFor()
  })
})

opened('a row that changes while it is pressed is opened all the same', {}, async page => {
  await page.locator('.stat').first().waitFor()
  const box = await page.evaluate(async () => {
    const { table } = await import(new URL('table.js', document.querySelector('script[type=module]').src))
    const { h } = await import(new URL('dom.js', document.querySelector('script[type=module]').src))
    const made = table({
      caption: 'rows', empty: '', rowKey: row => row.name, open: row => { document.title = `opened ${row.state}` },
      columns: [{ label: 'name', cell: row => h('code', {}, row.name) }, { label: 'state', cell: row => row.state }],
    })
    document.body.replaceChildren(made.element)
    made.update([{ name: 'files', state: 'pending' }])
    window.change = () => made.update([{ name: 'files', state: 'active' }])
    const { x, y, width, height } = document.querySelector('.opener code').getBoundingClientRect()
    return { x: x + width / 2, y: y + height / 2 }
  })
  await page.mouse.move(box.x, box.y)
  await page.mouse.down()
  await page.evaluate(() => window.change())
  await page.mouse.up()
  assert.equal(await page.title(), 'opened active')
})
