from better_compute import ComputeMigration, RunSqlFile


class Migration(ComputeMigration):
    dependencies = [("compute_iam", "0004_pages"), ("compute", "0005_access")]

    operations = [
        RunSqlFile("compute_modules.iam.schema", "0005_core_token_makers.sql", "0005_core_token_makers_down.sql"),
    ]
