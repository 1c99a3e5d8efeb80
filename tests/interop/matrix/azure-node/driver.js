// Does what it is asked for with the Service Bus SDK of Azure, and says one line of JSON a behaviour: node driver.js URL BEHAVIOUR...
'use strict';

const { NotOffered, connected } = require('./actor.js');

const known = Object.assign({}, require('./queues.js'), require('./topics.js'), require('./flows.js'), require('./times.js'), require('./defaults.js'));

const not_offered = {
    released: 'abandonMessage modifies; no call releases a message',
    selector: "the rules of a Service Bus subscription filter messages; receivers have no selectors",
    'temporary-queue': 'no dynamic source',
    'temporary-topic': 'no dynamic target',
    'anonymous-relay': 'each sender needs a queue or a topic',
    transaction: 'no transactions',
    groups: 'groups are the sessions of Service Bus, which the broker does not have',
};

function say(behaviour, verdict, detail) {
    process.stdout.write(JSON.stringify({ behaviour, verdict, detail: detail || '' }) + '\n');
}

async function show(url, name) {
    if (name in not_offered) return say(name, 'not offered', not_offered[name]);
    const client = connected(url);
    try {
        const detail = await known[name](client, name, url);
        await client.close();
        say(name, 'passed', detail);
    } catch (error) {
        if (error instanceof NotOffered) say(name, 'not offered', error.message);
        else say(name, 'failed', String(error));
    }
}

async function main() {
    const [url, ...names] = process.argv.slice(2);
    for (const name of names) await show(url, name);
    // What a failed behaviour has left open ends with the process.
    process.exit(0);
}

main();
