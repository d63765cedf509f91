from better_compute.contract.migrations import ComputeMigration, RunSqlFile


class Migration(ComputeMigration):
    dependencies = [("compute", "0007_idempotency")]
    operations = [RunSqlFile("better_compute.store.schema", "0008_seal_keys.sql", "0008_seal_keys_down.sql")]
