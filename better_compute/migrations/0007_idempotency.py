from better_compute.contract.migrations import ComputeMigration, RunSqlFile


class Migration(ComputeMigration):
    dependencies = [("compute", "0006_pages")]
    operations = [RunSqlFile("better_compute.store.schema", "0007_idempotency.sql", "0007_idempotency_down.sql")]
