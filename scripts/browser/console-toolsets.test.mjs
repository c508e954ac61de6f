// Toolsets in the console: the sets with what they offer and cost, and a draft that becomes lines for hako.yaml, which a host then applies.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'

import { answers, session } from './answers.mjs'
import { accessible, clean, narrow, shoot, sizes, startChromium, visit } from './chromium.mjs'
import { startHost, tokens } from './host.mjs'
import { startFake } from './fake.mjs'

let chromium
before(async () => { chromium = await startChromium() })
after(() => chromium.close())

const views = { toolsets: 'tbody tr', 'toolsets/support': 'tbody tr', 'toolsets?draft=support': '.result pre', 'toolsets?draft=': '.result .hint', 'toolsets?rules=': '.result pre' }

for (const [size, language, theme] of [['desktop', 'en', 'light'], ['desktop', 'ja', 'dark'], ['phone', 'ja', 'light'], ['phone', 'en', 'dark']]) {
  test(`every part: ${size}, ${language}, ${theme}`, async t => {
    assert.ok(sizes[size])
    const host = await startFake(answers(session()))
    t.after(() => host.stop())
    const page = await chromium.open(host.url, { size, language, theme })
    for (const [view, shown] of Object.entries(views)) {
      await visit(page, view)
      await page.locator(`.toolsets ${shown}`).first().waitFor()
      const name = `toolsets-${view.replace(/[^a-z]+/g, '-')}-${size}-${language}-${theme}`
      await narrow(page, name)
      await accessible(page, name)
      await shoot(page, name)
    }
    await clean(page)
  })
}

test('a viewer sees the sets, and cannot draft one', async t => {
  const host = await startFake(answers(session('viewer')))
  t.after(() => host.stop())
  const page = await chromium.open(`${host.url}#/toolsets`)
  await page.locator('.toolsets tbody tr').first().waitFor()
  await page.getByText('This needs the role admin.').first().waitFor()
  await visit(page, 'toolsets?draft=support')
  await page.locator('.toolsets .problem').waitFor()
  await visit(page, 'toolsets?rules=')
  await page.locator('.toolsets h1', { hasText: 'Draft of rules' }).waitFor()
  assert.equal(await page.locator('.toolsets form').count(), 0)
  assert.deepEqual(host.posted.filter(({ name }) => name.startsWith('toolsets')), [])
  await clean(page)
})

test('the lists are searched and sorted, and the address has both', async t => {
  const host = await startFake(answers(session()))
  t.after(() => host.stop())
  const page = await chromium.open(`${host.url}#/toolsets`)
  await page.locator('.toolsets tbody tr').nth(2).waitFor()
  const names = () => page.locator('.toolsets .rows').first().locator('tbody tr th strong').allTextContents()
  await page.getByRole('searchbox', { name: 'Filter toolsets' }).fill('REPOS builds')
  assert.deepEqual(await names(), ['engineering'])
  assert.equal(new URL(page.url()).hash, '#/toolsets?q=REPOS+builds')
  await page.reload()
  await page.locator('.toolsets tbody tr').first().waitFor()
  assert.deepEqual(await names(), ['engineering'])
  await page.getByRole('searchbox', { name: 'Filter toolsets' }).fill('')
  const byTokens = page.getByRole('columnheader', { name: 'Tokens' }).getByRole('button')
  await byTokens.click()
  assert.deepEqual(await names(), ['all', 'engineering', 'support'])
  await byTokens.click()
  assert.deepEqual(await names(), ['support', 'engineering', 'all'])
  assert.equal(new URL(page.url()).hash, '#/toolsets?sort=tokens')
  await page.goto(`${host.url}#/toolsets/support?q=weather`)
  await page.locator('.toolsets tbody tr', { hasText: 'weather' }).first().waitFor()
  for (const row of await page.locator('.toolsets tbody tr').allTextContents()) assert.match(row, /weather/)
  await clean(page)
})

test('what is wrong with a draft is said by field', async t => {
  const error = { code: 'invalid', text: 'the toolset is not valid in hako.yaml', fields: { 'tools.0': '<b>no</b>', name: 'no URL', groups: 'too long' } }
  const host = await startFake({ ...answers(session()), 'POST toolsets/preview': { status: 400, error } })
  t.after(() => host.stop())
  const page = await chromium.open(`${host.url}#/toolsets?draft=support`)
  await page.locator('.result li').nth(2).waitFor()
  assert.match(await page.locator('.result').textContent(), /Tool 1 <b>no<\/b>Name no URLGroups too long/)
  await page.getByLabel('Fixed arguments, as JSON').first().fill('{')
  await page.locator('.result .problem', { hasText: 'This is not JSON' }).waitFor()
  await clean(page)
})

test('rules are added, moved and removed, and those that decide about nobody are named', async t => {
  const host = await startFake(answers(session()))
  t.after(() => host.stop())
  const page = await chromium.open(`${host.url}#/toolsets?rules=`)
  const drafted = async sets => page.locator('.result pre', { hasText: new RegExp(`^toolsets:\\s+rules:\\s+${sets.map(set => `- toolset: ${set}`).join('\\s+')}\\s*$`) }).first().waitFor()
  await drafted(['all', 'support', 'support'])
  await page.getByRole('button', { name: 'Add a rule' }).click()
  await page.keyboard.type('engineering')
  await drafted(['all', 'support', 'support', 'engineering'])
  await page.locator('.result .notice', { hasText: 'Rule 4 decides about nobody: rule 2 matches all of its callers.' }).waitFor()
  const rule = n => page.getByRole('group', { name: `Rule ${n}`, exact: true })
  await rule(4).getByRole('button', { name: 'Move up' }).click()
  await drafted(['all', 'support', 'engineering', 'support'])
  await rule(1).getByRole('button', { name: 'Move up' }).click() // stays
  await rule(1).getByRole('button', { name: 'Move down' }).click()
  await drafted(['support', 'all', 'engineering', 'support'])
  await rule(2).getByRole('button', { name: 'Remove' }).click()
  await drafted(['support', 'engineering', 'support'])
  assert.deepEqual(host.posted.at(-1).body.rules[0], { frontends: ['slack'], channels: ['C0123456789'], users: [], groups: [], tenants: [], tokens: [], toolset: 'support' })
  await clean(page)
})

describe('a host', () => {
  let host, page
  before(async () => {
    host = await startHost()
    page = await chromium.open(host.url)
    await page.locator('#token').fill(tokens.admin)
    await page.keyboard.press('Enter')
    await page.locator('.attention').getByRole('link', { name: 'weather' }).click()
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click()
    await page.locator('.head .badge.good').waitFor()
  })
  after(async () => {
    await clean(page)
    await host.stop()
  })

  test('a set is drafted, put into hako.yaml, and offered', async () => {
    await visit(page, 'toolsets')
    await page.locator('.toolsets tbody tr', { hasText: 'all' }).first().waitFor()
    await page.getByRole('button', { name: 'Draft a toolset' }).click()
    await page.getByText('Name the set and at least one tool.').waitFor()
    await page.getByLabel('Name', { exact: true }).fill('Osaka')
    await page.getByLabel('Name, or a pattern with *').fill('get_weather')
    await page.locator('.result .problem').waitFor()
    await page.getByLabel('Name', { exact: true }).fill('osaka')
    await page.getByText('Name, arguments, description').click()
    await page.getByLabel('Name for models').fill('osaka_weather')
    await page.getByLabel('Fixed arguments, as JSON').fill('{"location": "大阪"}')
    await page.locator('.result tbody tr', { hasText: 'osaka_weather' }).filter({ hasText: 'location = "大阪"' }).waitFor()
    await page.getByRole('button', { name: 'Add tools' }).click()
    await page.keyboard.type('nothing_*')
    await page.locator('.result .notice', { hasText: 'nothing_* matches no tool' }).waitFor()
    await shoot(page, 'toolsets-host-draft')
    const lines = await page.locator('.result pre').first().textContent()
    const file = path.join(host.cwd, 'hako.yaml')
    await writeFile(file, `${await readFile(file, 'utf8')}\n${lines}`)
    await visit(page, 'configuration')
    await page.getByRole('button', { name: 'Reload' }).click()
    // The host may have seen by itself that the file has changed.
    await page.locator('.notice.good').waitFor()
    await visit(page, 'toolsets/osaka')
    await page.locator('.toolsets tbody tr', { hasText: 'osaka_weather' }).waitFor()
    await page.locator('.toolsets .notice', { hasText: 'nothing_* matches no tool' }).waitFor()
    await shoot(page, 'toolsets-host-set')
    await page.getByRole('button', { name: 'Draft a change' }).click()
    await page.locator('.result', { hasText: 'There is no difference.' }).waitFor()
    await page.getByLabel('For people: what it is for').fill('Weather in 大阪')
    await page.locator('.diff ins', { hasText: 'Weather in 大阪' }).waitFor()
  })

  test('rules are drafted, put into hako.yaml, and in force', async () => {
    await visit(page, 'toolsets')
    await page.getByRole('button', { name: 'Draft other rules' }).click()
    await page.getByText('Add a rule. Without rules everyone is offered everything.').waitFor()
    await page.getByRole('button', { name: 'Add a rule' }).click()
    await page.getByLabel('Toolset', { exact: true }).fill('osak')
    await page.locator('.result li', { hasText: 'Rule 1' }).filter({ hasText: 'did you mean "osaka"?' }).waitFor()
    await page.getByLabel('Toolset', { exact: true }).fill('osaka')
    await page.getByLabel('Frontends').fill('slack')
    await page.getByRole('button', { name: 'Add a rule' }).click()
    await page.getByLabel('Toolset', { exact: true }).nth(1).fill('all')
    await page.getByLabel('Frontends').nth(1).fill('slack')
    await page.locator('.result .notice', { hasText: 'Rule 2 decides about nobody' }).waitFor()
    await page.getByRole('button', { name: 'Remove' }).nth(1).click()
    await page.locator('.result .notice').waitFor({ state: 'detached' })
    const lines = await page.locator('.result pre').first().textContent()
    const file = path.join(host.cwd, 'hako.yaml')
    await writeFile(file, (await readFile(file, 'utf8')).replace(/^toolsets:\n/m, lines))
    await visit(page, 'configuration')
    await page.getByRole('button', { name: 'Reload' }).click()
    await page.locator('.notice.good').waitFor()
    await visit(page, 'toolsets')
    await page.locator('.toolsets table', { hasText: 'Who is offered which' }).locator('tbody tr', { hasText: 'osaka' }).waitFor()
    await page.getByRole('button', { name: 'Draft other rules' }).click()
    await page.locator('.result', { hasText: 'There is no difference.' }).waitFor()
  })
})
